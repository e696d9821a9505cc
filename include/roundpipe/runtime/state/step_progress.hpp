// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How far optimizer steps and P copies are, for threads that did not make them.

#include <roundpipe/config.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace roundpipe {

/// Counts the steps that have updated every block, and says whether the next one has begun. One
/// thread updates, one copies parameters; any thread may ask.
class StepProgress {
 public:
  explicit StepProgress(ParameterBlocks const& blocks)
      : trained_(static_cast<std::size_t>(
            std::count_if(blocks.blocks.begin(), blocks.blocks.end(), [](auto const& block) {
              return !block.frozen;
            }))) {}

  /// Says that step \p step, which has not changed anything, is about to. \returns false where it
  /// must not: it was called off.
  [[nodiscard]] bool begin(std::uint64_t step) noexcept;
  /// Whether step \p step has begun. If not, it never will: it is called off.
  [[nodiscard]] bool has_begun_or_call_off(std::uint64_t step) noexcept;
  /// Whether the step after the last finished one has begun. When an error has stopped it there,
  /// the training cannot go on.
  [[nodiscard]] bool has_begun() const noexcept;
  /// Lets the next step begin again, after one was called off.
  void resume() noexcept { begun_.store(finished_steps(), std::memory_order_release); }

  /// Says that the update of a block begins.
  void begin_block() noexcept { is_torn_.store(true, std::memory_order_release); }
  /// Says that step \p step has updated one more block, or with \p skipped left it as it was.
  void end_block(std::uint64_t step, bool skipped) noexcept;
  /// Says that \p finished steps are finished, of which \p skipped were skipped, and that no step
  /// has begun since. Call it while no step is under way, also after an error.
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
  /// Says whether P copies of some blocks are made and of others are not. Set before a step begins
  /// with them.
  void set_copying(bool copying) noexcept;
  [[nodiscard]] bool is_copying() const noexcept {
    return is_copying_.load(std::memory_order_acquire);
  }
  /// Blocks while P copies are under way.
  void wait_copied() const noexcept { is_copying_.wait(true, std::memory_order_acquire); }

  /// Says that every master copy holds the weights of step \p step, by P copies.
  void set_copied_step(std::uint64_t step) noexcept {
    copied_step_.store(step, std::memory_order_release);
  }
  [[nodiscard]] std::uint64_t copied_step() const noexcept {
    return copied_step_.load(std::memory_order_acquire);
  }

  /// Whether there is anything to update.
  [[nodiscard]] bool trains() const noexcept { return trained_ > 0; }

 private:
  static constexpr auto called_off = std::numeric_limits<std::uint64_t>::max();

  std::size_t trained_;      // blocks
  std::size_t updated_ = 0;  // blocks of the step under way
  std::atomic<bool> is_torn_{false};
  std::atomic<std::uint64_t> begun_{0};  // the newest step that has begun, or called_off
  std::atomic<std::uint64_t> finished_steps_{0};
  std::atomic<bool> is_copying_{false};
  std::atomic<std::uint64_t> copied_step_{0};
  std::atomic<std::uint64_t> skipped_steps_{0};
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/step_progress.ipp>
#endif
