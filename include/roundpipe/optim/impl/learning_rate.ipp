// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/learning_rate.hpp>

#include <cmath>
#include <cstdint>
#include <numbers>

namespace roundpipe {

ROUNDPIPE_INLINE LearningRate LearningRate::warmup_cosine(double peak,
                                                          std::uint64_t warmup_steps,
                                                          std::uint64_t total_steps,
                                                          double final) {
  require(total_steps > 0 && warmup_steps <= total_steps,
          Errc::invalid_argument,
          "a learning rate needs at least one step, and no more warm-up steps than steps");
  return {peak, warmup_steps, total_steps, final};
}

ROUNDPIPE_INLINE double LearningRate::operator()(std::uint64_t step) const {
  require(step > 0, Errc::invalid_argument, "steps are counted from 1");
  if (step <= warmup_steps_) {
    return peak_ * (static_cast<double>(step) / static_cast<double>(warmup_steps_));
  }
  if (step >= total_steps_) {
    return final_;
  }
  auto const progress =
      static_cast<double>(step - warmup_steps_) / static_cast<double>(total_steps_ - warmup_steps_);
  return final_ + (peak_ - final_) * (0.5 * (1 + std::cos(std::numbers::pi * progress)));
}

ROUNDPIPE_INLINE LearningRate::LearningRate(double peak,
                                            std::uint64_t warmup_steps,
                                            std::uint64_t total_steps,
                                            double final)
    : peak_(peak), final_(final), warmup_steps_(warmup_steps), total_steps_(total_steps) {
  require(std::isfinite(peak) && peak >= 0 && std::isfinite(final) && final >= 0,
          Errc::invalid_argument,
          "a learning rate must be finite and not negative");
}

}  // namespace roundpipe
