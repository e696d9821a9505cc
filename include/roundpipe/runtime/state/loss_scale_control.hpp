// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The loss scale of each iteration, adapted to the steps that have overflowed.

#include <roundpipe/config.hpp>
#include <roundpipe/optim/loss_scale.hpp>

#include <cstdint>
#include <functional>
#include <optional>

namespace roundpipe {

/// Says by what the losses of an iteration are multiplied; 1 without a loss scale.
class LossScaleControl {
 public:
  /// \p staleness: how many steps behind the newest one a call's weights may be.
  LossScaleControl(std::optional<LossScaleOptions> const& options, int staleness);

  /// Takes the value for the iteration that ends with step \p next_step. \p has_overflowed waits
  /// until a step's gradients are measured and tells whether they are not finite; it is called for
  /// each step that counts by now, once and in order.
  /// \throws Error as \ref DynamicLossScale does, and what \p has_overflowed throws.
  void adapt(std::uint64_t next_step, std::function<bool(std::uint64_t)> const& has_overflowed);

  /// Becomes \p earlier where this knows of steps that iteration \p next_step, which is to begin
  /// again, must not know of.
  void go_back(LossScaleControl const& earlier, std::uint64_t next_step);

  [[nodiscard]] double value() const noexcept { return value_; }

  /// None without a loss scale.
  [[nodiscard]] std::optional<LossScaleState> state() const;
  /// Goes on from \p state. \throws Error (invalid_argument) when only one of the two has a loss
  /// scale, and as \ref DynamicLossScale does.
  void restore(std::optional<LossScaleState> const& state);

 private:
  std::optional<DynamicLossScale> scale_;
  double value_ = 1;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/loss_scale_control.ipp>
#endif
