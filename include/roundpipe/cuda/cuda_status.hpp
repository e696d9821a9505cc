// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the parts of one CUDA backend share: whether it was stopped, and the fences to open.

#include <roundpipe/core/error.hpp>

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

namespace roundpipe::cu::detail {

/// The state of a backend. Several threads may call its members at once.
class CudaStatus {
 public:
  /// The value of a fence that lets every waiter pass: the largest positive one, since streams
  /// compare by the sign of the difference.
  static constexpr std::uint64_t passed =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

  [[nodiscard]] bool aborted() const noexcept { return aborted_.load(std::memory_order_acquire); }

  void throw_if_aborted() const {
    if (aborted()) {
      throw Error(Errc::aborted, "the CUDA backend was stopped");
    }
  }

  /// Stops the backend: every fence that was added lets all pass, and so does one added later.
  void abort() noexcept {
    std::lock_guard const lock(mutex_);
    aborted_.store(true, std::memory_order_release);
    for (auto* const fence : fences_) {
      open(*fence);
    }
  }

  /// Fences that are added from now on are closed again, and streams enqueue.
  void resume() noexcept {
    std::lock_guard const lock(mutex_);
    aborted_.store(false, std::memory_order_release);
  }

  /// From now on until \ref remove_fence, \ref abort opens \p flag.
  void add_fence(std::uint64_t& flag) {
    std::lock_guard const lock(mutex_);
    fences_.push_back(&flag);
    if (aborted()) {
      open(flag);
    }
  }
  void remove_fence(std::uint64_t& flag) noexcept {
    std::lock_guard const lock(mutex_);
    std::erase(fences_, &flag);
  }

 private:
  static void open(std::uint64_t& flag) noexcept {
    std::atomic_ref(flag).store(passed, std::memory_order_release);
    std::atomic_ref(flag).notify_all();
  }

  std::atomic<bool> aborted_{false};
  std::mutex mutex_;
  std::vector<std::uint64_t*> fences_;
};

}  // namespace roundpipe::cu::detail
