// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/optim/clipping.hpp>
#include <roundpipe/runtime/state/gradient_scaler.hpp>

#include <cmath>
#include <cstdint>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE StepFactor step_factor(GradientScalerOptions const& options,
                                        std::uint64_t step,
                                        double squares,
                                        double loss_scale) {
  if (options.measures() && !std::isfinite(squares)) {
    require(options.skips_overflows,
            Errc::not_finite,
            ("the gradient's norm at step " + std::to_string(step) + " is not finite").c_str());
    return {0, true};
  }
  auto const clip =
      options.clip_norm > 0 ? clip_factor(std::sqrt(squares) / loss_scale, options.clip_norm) : 1.0;
  return {static_cast<float>(clip / loss_scale), false};
}

ROUNDPIPE_INLINE void GradientScaler::add(BlockId block, std::uint64_t step, double squares) {
  squares_[block.index()] = squares;
  sum_ = 0;
  for (auto const square : squares_) {
    sum_ += square;
  }
  set_overflowed(step, !std::isfinite(sum_));
}

}  // namespace roundpipe
