// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief One piece of work at a time beside the caller, and its error.

#include <roundpipe/system/start_thread.hpp>

#include <atomic>
#include <exception>
#include <thread>
#include <utility>

namespace roundpipe {

/// A thread that writes snapshots while there is one to write. Members are for one thread at a
/// time.
class BackgroundWork {
 public:
  BackgroundWork() = default;
  BackgroundWork(BackgroundWork const&) = delete;
  BackgroundWork& operator=(BackgroundWork const&) = delete;
  /// Waits for the work. Drops its error.
  ~BackgroundWork() { join(); }

  /// Runs \p f on a thread, and keeps its error. The work before must have been waited for.
  /// \throws Error as \ref start_thread does; then \p f does not run.
  template <class F>
  void start(F f) {
    busy_.store(true, std::memory_order_relaxed);
    try {
      thread_ = start_thread("writing snapshots", [this, f = std::move(f)]() mutable {
        try {
          f();
        } catch (...) {
          error_ = std::current_exception();
        }
        busy_.store(false, std::memory_order_release);
      });
    } catch (...) {
      busy_.store(false, std::memory_order_relaxed);
      throw;
    }
  }

  [[nodiscard]] bool is_busy() const noexcept { return busy_.load(std::memory_order_acquire); }

  /// Waits for the work. \returns its error, once; null without one.
  [[nodiscard]] std::exception_ptr wait() noexcept {
    join();
    return std::exchange(error_, nullptr);
  }

 private:
  void join() noexcept {
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  std::exception_ptr error_;  // of the thread while busy_, else of the caller
  std::atomic<bool> busy_ = false;
  std::thread thread_;
};

}  // namespace roundpipe
