// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The factor that keeps small half-precision gradients from vanishing; it adapts to
/// overflows.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>
#include <cstdint>

namespace roundpipe {

/// How a loss scale adapts (Micikevicius et al., "Mixed precision training", ICLR 2018, section
/// 3.2; the numbers are customary).
struct LossScaleOptions {
  double initial = 65536;
  double growth = 2;     ///< Above 1: the factor after \c growth_interval steps without overflow.
  double backoff = 0.5;  ///< In (0, 1): the factor after an overflow.
  std::size_t growth_interval = 2000;
  double smallest = 1;  ///< An overflow at this scale is an error: the scale is not its cause.
};

/// What a loss scale has come to.
struct LossScaleState {
  double value = 1;
  std::uint64_t clean_steps = 0;     ///< Since the last overflow or growth.
  std::uint64_t recorded_steps = 0;  ///< Those whose verdicts the value follows from.
};

/// \brief The loss scale of each iteration: a function of which steps overflowed, not of when this
/// became known.
/// The scale of iteration t follows from steps 1 to t - 1 - staleness. Powers of two as factors
/// keep scaling exact.
class DynamicLossScale {
 public:
  /// \throws Error (invalid_argument) for invalid options.
  DynamicLossScale(LossScaleOptions const& options, int staleness);

  /// The newest step whose verdict the scale of iteration \p iteration needs; all earlier ones are
  /// needed, too. 0: none.
  [[nodiscard]] std::size_t newest_step(std::size_t iteration) const noexcept {
    return iteration > lag_ ? iteration - lag_ : 0;
  }

  /// Records, in step order, whether the next step overflowed.
  /// \throws Error (not_finite) when it overflowed at the smallest scale; the step is recorded
  /// then, too, so that the caller may go on.
  void record(bool overflowed);

  [[nodiscard]] std::size_t recorded() const noexcept { return recorded_; }
  [[nodiscard]] double value() const noexcept { return scale_; }

  [[nodiscard]] LossScaleState state() const noexcept { return {scale_, clean_, recorded_}; }
  /// Goes on from \p state. \throws Error (invalid_argument) when its value is no scale.
  void restore(LossScaleState const& state);

 private:
  LossScaleOptions options_;
  double scale_;
  std::size_t lag_;
  std::size_t clean_ = 0;
  std::size_t recorded_ = 0;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/loss_scale.ipp>
#endif
