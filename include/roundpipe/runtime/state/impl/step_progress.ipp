// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/runtime/state/step_progress.hpp>

#include <atomic>
#include <cstdint>

namespace roundpipe {

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
}

}  // namespace roundpipe
