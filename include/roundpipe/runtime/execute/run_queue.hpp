// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a worker thread takes its runs from.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace roundpipe {

/// A FIFO between one producer and one consumer thread that can be closed and opened again.
template <class T>
class RunQueue {
 public:
  void push(T value) {
    {
      std::lock_guard const lock(mutex_);
      values_.push_back(value);
    }
    changed_.notify_one();
  }

  /// The next value; nothing once the queue is closed and empty.
  [[nodiscard]] std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !values_.empty(); });
    if (values_.empty()) {
      return std::nullopt;
    }
    T const value = values_.front();
    values_.pop_front();
    return value;
  }

  /// No more values will come; those that are there are still taken.
  void close() {
    {
      std::lock_guard const lock(mutex_);
      closed_ = true;
    }
    changed_.notify_one();
  }

  /// Drops what is there, and more values may come. Nobody may wait.
  void reopen() {
    std::lock_guard const lock(mutex_);
    values_.clear();
    closed_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
  bool closed_ = false;
};

}  // namespace roundpipe
