// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How far optimizer steps are, for threads that did not make them.

#include <roundpipe/config.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

/// Counts the steps that have updated every block. One thread updates; any thread may ask.
class StepProgress {
 public:
  explicit StepProgress(ParameterBlocks const& blocks)
      : trained_(static_cast<std::size_t>(
            std::count_if(blocks.blocks.begin(), blocks.blocks.end(), [](auto const& block) {
              return !block.frozen;
            }))) {}

  /// Says that the update of a block begins.
  void begin_block() noexcept { is_torn_.store(true, std::memory_order_release); }
  /// Says that step \p step has updated one more block, or with \p skipped left it as it was.
  void end_block(std::uint64_t step, bool skipped) noexcept;
  /// Says that \p finished steps are finished, of which \p skipped were skipped. Call it while no
  /// step is under way.
  void restore(std::uint64_t finished, std::uint64_t skipped) noexcept;

  /// The number of the last step that has updated every block.
  [[nodiscard]] std::uint64_t finished_steps() const noexcept {
    return finished_steps_.load(std::memory_order_acquire);
  }
  /// How many of the finished steps were skipped because their gradients had overflowed.
  [[nodiscard]] std::uint64_t skipped_steps() const noexcept {
    return skipped_steps_.load(std::memory_order_acquire);
  }
  /// Whether a step has updated some blocks, but not all. When an error has stopped it there, the
  /// weights belong to no step.
  [[nodiscard]] bool is_torn() const noexcept { return is_torn_.load(std::memory_order_acquire); }
  /// Whether there is anything to update.
  [[nodiscard]] bool trains() const noexcept { return trained_ > 0; }

 private:
  std::size_t trained_;      // blocks
  std::size_t updated_ = 0;  // blocks of the step under way
  std::atomic<bool> is_torn_{false};
  std::atomic<std::uint64_t> finished_steps_{0};
  std::atomic<std::uint64_t> skipped_steps_{0};
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/step_progress.ipp>
#endif
