// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/runtime/state/step_progress.hpp>

#include <atomic>
#include <cstdint>

namespace roundpipe {

ROUNDPIPE_INLINE bool StepProgress::begin(std::uint64_t step) noexcept {
  auto seen = begun_.load(std::memory_order_acquire);
  while (seen < step && !begun_.compare_exchange_weak(seen, step, std::memory_order_acq_rel)) {
  }
  return seen != called_off;  // the next step's P copies may have begun
}

ROUNDPIPE_INLINE bool StepProgress::has_begun_or_call_off(std::uint64_t step) noexcept {
  auto seen = begun_.load(std::memory_order_acquire);
  while (seen < step &&
         !begun_.compare_exchange_weak(seen, called_off, std::memory_order_acq_rel)) {
  }
  return seen >= step && seen != called_off;
}

ROUNDPIPE_INLINE bool StepProgress::has_begun() const noexcept {
  auto const begun = begun_.load(std::memory_order_acquire);
  return begun != called_off && begun > finished_steps();
}

ROUNDPIPE_INLINE void StepProgress::set_copying(bool copying) noexcept {
  is_copying_.store(copying, std::memory_order_release);
  is_copying_.notify_all();
}

ROUNDPIPE_INLINE void StepProgress::end_block(std::uint64_t step, bool skipped) noexcept {
  if (++updated_ == trained_) {
    updated_ = 0;
    is_torn_.store(false, std::memory_order_release);
    skipped_steps_.fetch_add(skipped ? 1 : 0, std::memory_order_acq_rel);
    finished_steps_.store(step, std::memory_order_release);
  }
}

ROUNDPIPE_INLINE void StepProgress::restore(std::uint64_t finished,
                                            std::uint64_t skipped) noexcept {
  skipped_steps_.store(skipped, std::memory_order_release);
  finished_steps_.store(finished, std::memory_order_release);
  updated_ = 0;
  is_torn_.store(false, std::memory_order_release);
  set_copying(false);
  resume();
}

}  // namespace roundpipe
