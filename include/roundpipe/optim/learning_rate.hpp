// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Learning rates as functions of the step number.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace roundpipe {

/// \brief The learning rate of each step: constant, a linear warm-up followed by half a cosine, or
/// any function of the step. Steps count from 1, so that the first step of a warm-up already
/// learns.
class LearningRate {
 public:
  /// \p rate(step): any callable that gives a step's rate. Several threads ask for the rate of a
  /// step, and the answer is always the same.
  template <class F>
    requires(!std::same_as<F, LearningRate> &&
             std::is_invocable_r_v<double, F const&, std::uint64_t>)
  LearningRate(F rate) : rate_(std::move(rate)) {}

  /// The same \p rate in every step.
  /// \throws Error (invalid_argument) when \p rate is negative or not finite.
  [[nodiscard]] static LearningRate constant(double rate);

  /// \p peak s / \p warmup_steps in each step s up to \p warmup_steps; then half a cosine (SGDR,
  /// Loshchilov & Hutter 2017, equation 5, without restarts) from \p peak to \p final, which step
  /// \p total_steps reaches; then \p final. \p final may be above \p peak.
  /// \throws Error (invalid_argument) when a rate is negative or not finite, there are no steps, or
  /// the warm-up is longer than all steps.
  [[nodiscard]] static LearningRate warmup_cosine(double peak,
                                                  std::uint64_t warmup_steps,
                                                  std::uint64_t total_steps,
                                                  double final = 0);

  /// The rate in step \p step. \throws Error (invalid_argument) for step 0, and for a rate that is
  /// negative or not finite.
  [[nodiscard]] double operator()(std::uint64_t step) const;

 private:
  std::function<double(std::uint64_t)> rate_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/learning_rate.ipp>
#endif
