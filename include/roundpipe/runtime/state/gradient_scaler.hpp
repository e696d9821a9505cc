// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the gradients of a step say about it: by what they are multiplied, or that the step
/// is skipped.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe {

/// What a step does with its gradients' norm.
struct GradientScalerOptions {
  double clip_norm = 0;          ///< Largest global norm of a step's gradient; 0: no clipping.
  bool skips_overflows = false;  ///< Whether a gradient that is not finite skips the step.

  [[nodiscard]] bool measures() const noexcept { return clip_norm > 0 || skips_overflows; }
};

/// What an update does with gradients.
struct StepFactor {
  float gradient = 1;  ///< Every gradient is multiplied by it: unscaled, clipped.
  bool skips = false;  ///< The weights stay as they are.
};

/// The factor of step \p step, whose gradients were made with \p loss_scale and have \p squares as
/// the sum of their squares. Clipping sees the unscaled norm.
/// \throws Error (not_finite) for a sum that is not finite, unless such a step is to be skipped.
[[nodiscard]] StepFactor step_factor(GradientScalerOptions const& options,
                                     std::uint64_t step,
                                     double squares,
                                     double loss_scale);

/// The norms of the step under way, and whether the last steps overflowed. \ref add and \ref factor
/// are the optimizer lane's, \ref has_overflowed the controller's.
class GradientScaler {
 public:
  GradientScaler(ParameterBlocks const& blocks, GradientScalerOptions options)
      : options_(options), squares_(blocks.blocks.size()) {}

  /// Adds the sum of squares of a block's gradient. The sum over blocks is in their order.
  void add(BlockId block, std::uint64_t step, double squares);

  /// Refuses the step for a block's own gradient, so that the error can name it.
  /// \throws Error (not_finite) for a sum of squares that is not finite, unless the step is to be
  ///         skipped then.
  void require_finite(BlockId block, std::uint64_t step) const {
    (void)step_factor(options_, step, squares_[block.index()], 1);
  }

  [[nodiscard]] StepFactor factor(std::uint64_t step, double loss_scale) const {
    return step_factor(options_, step, sum_, loss_scale);
  }

  /// Whether step \p step, one of the last two whose blocks were all added, is not finite.
  [[nodiscard]] bool has_overflowed(std::uint64_t step) const {
    return overflowed_[step % overflowed_.size()].load(std::memory_order_acquire);
  }
  /// Says the same of a step that was measured elsewhere.
  void set_overflowed(std::uint64_t step, bool overflowed) noexcept {
    overflowed_[step % overflowed_.size()].store(overflowed, std::memory_order_release);
  }

 private:
  GradientScalerOptions options_;
  std::vector<double> squares_;  // by block; of the step under way or, before it is added, the last
  double sum_ = 0;
  std::array<std::atomic<bool>, 4> overflowed_{};
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/gradient_scaler.ipp>
#endif
