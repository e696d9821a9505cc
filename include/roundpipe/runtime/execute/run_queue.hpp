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

/// A FIFO between one producer and one consumer thread that can be closed.
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

  /// The next value; nothing once the queue is closed and empty, or cut off.
  [[nodiscard]] std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return cut_off_ || closed_ || !values_.empty(); });
    if (cut_off_ || values_.empty()) {
      return std::nullopt;
    }
    T const value = values_.front();
    values_.pop_front();
    return value;
  }

  /// No more values will come; those that are there are still taken.
  void close() { set(closed_); }
  /// Drops what is there, too.
  void cut_off() { set(cut_off_); }

 private:
  void set(bool& flag) {
    {
      std::lock_guard const lock(mutex_);
      flag = true;
    }
    changed_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
  bool closed_ = false;
  bool cut_off_ = false;
};

}  // namespace roundpipe
