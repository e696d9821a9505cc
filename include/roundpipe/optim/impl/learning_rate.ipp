// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/learning_rate.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>

namespace roundpipe {

namespace detail {

[[nodiscard]] constexpr bool is_rate(double rate) noexcept {
  return rate >= 0 && rate < std::numeric_limits<double>::infinity();
}

}  // namespace detail

ROUNDPIPE_INLINE LearningRate LearningRate::constant(double rate) {
  return warmup_cosine(rate, 0, 1, rate);
}

ROUNDPIPE_INLINE LearningRate LearningRate::warmup_cosine(double peak,
                                                          std::uint64_t warmup_steps,
                                                          std::uint64_t total_steps,
                                                          double final) {
  require(detail::is_rate(peak) && detail::is_rate(final),
          Errc::invalid_argument,
          "a learning rate must be finite and not negative");
  require(total_steps > 0 && warmup_steps <= total_steps,
          Errc::invalid_argument,
          "a learning rate needs at least one step, and no more warm-up steps than steps");
  return {[=](std::uint64_t step) {
    if (step <= warmup_steps) {
      return peak * (static_cast<double>(step) / static_cast<double>(warmup_steps));
    }
    if (step >= total_steps) {
      return final;
    }
    auto const progress =
        static_cast<double>(step - warmup_steps) / static_cast<double>(total_steps - warmup_steps);
    return final + (peak - final) * (0.5 * (1 + std::cos(std::numbers::pi * progress)));
  }};
}

ROUNDPIPE_INLINE double LearningRate::operator()(std::uint64_t step) const {
  require(step > 0, Errc::invalid_argument, "steps are counted from 1");
  auto const rate = rate_(step);
  if (!detail::is_rate(rate)) {
    throw Error(Errc::invalid_argument,
                "the learning rate of step " + std::to_string(step) + " is " +
                    std::to_string(rate) + "; it must be finite and not negative");
  }
  return rate;
}

}  // namespace roundpipe
