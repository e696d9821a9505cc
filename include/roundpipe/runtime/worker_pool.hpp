// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A few threads that share the elements of an array.

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace roundpipe {

/// Runs a function over parts of a range on several threads, the caller's among them.
class WorkerPool {
 public:
  /// \p threads counts the caller's; 0 stands for 1.
  explicit WorkerPool(std::size_t threads) {
    for (std::size_t i = 1; i < threads; ++i) {
      workers_.emplace_back([this, i] { work(i); });
    }
  }
  WorkerPool(WorkerPool const&) = delete;
  WorkerPool& operator=(WorkerPool const&) = delete;
  ~WorkerPool() {
    {
      std::lock_guard const lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    for (auto& worker : workers_) {
      worker.join();
    }
  }

  /// Calls `f(begin, end)` for parts that cover [0, \p size) once, cut at multiples of \p grain,
  /// and returns when all are done. For one caller at a time. Rethrows what \p f throws.
  void for_each_part(std::size_t size,
                     std::size_t grain,
                     std::function<void(std::size_t, std::size_t)> const& f) {
    auto const threads = workers_.size() + 1;
    auto const grains = (size + grain - 1) / grain;
    if (threads == 1 || grains < 2) {
      f(0, size);
      return;
    }
    {
      std::lock_guard const lock(mutex_);
      part_ = (grains + threads - 1) / threads * grain;
      size_ = size;
      function_ = &f;
      pending_ = workers_.size();
      ++job_;
    }
    changed_.notify_all();
    run_part(0);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return pending_ == 0; });
    if (error_) {
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
  }

 private:
  void work(std::size_t index) {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stops_ || job_ != seen; });
      if (stops_) {
        return;
      }
      seen = job_;
      lock.unlock();
      run_part(index);
      lock.lock();
      if (--pending_ == 0) {
        changed_.notify_all();
      }
    }
  }

  void run_part(std::size_t index) {
    auto const begin = std::min(index * part_, size_);
    auto const end = std::min(begin + part_, size_);
    try {
      if (begin < end) {
        (*function_)(begin, end);
      }
    } catch (...) {
      std::lock_guard const lock(mutex_);
      error_ = std::current_exception();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void(std::size_t, std::size_t)> const* function_ = nullptr;
  std::size_t size_ = 0;
  std::size_t part_ = 0;
  std::size_t pending_ = 0;
  std::uint64_t job_ = 0;
  std::exception_ptr error_;
  bool stops_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace roundpipe
