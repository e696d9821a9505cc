// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The loss scale of each iteration, adapted to the steps that have overflowed.

#include <roundpipe/optim/loss_scale.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace roundpipe {

/// Says by what the losses of an iteration are multiplied; 1 without a loss scale.
class LossScaleControl {
 public:
  /// \p staleness: how many steps behind the newest one a call's weights may be.
  LossScaleControl(std::optional<LossScaleOptions> const& options, int staleness) {
    if (options) {
      scale_.emplace(*options, staleness);
    }
  }

  /// Takes the value for the iteration that ends with step \p next_step. \p has_overflowed waits
  /// until a step's gradients are measured and tells whether they are not finite; it is called for
  /// each step that counts by now, once and in order.
  /// \throws Error as \ref DynamicLossScale does, and what \p has_overflowed throws.
  void adapt(std::uint64_t next_step, std::function<bool(std::uint64_t)> const& has_overflowed) {
    if (!scale_) {
      return;
    }
    auto const newest = scale_->newest_step(static_cast<std::size_t>(next_step));
    while (scale_->recorded() < newest) {
      scale_->record(has_overflowed(scale_->recorded() + 1));
    }
    value_ = scale_->value();
  }

  [[nodiscard]] double value() const noexcept { return value_; }

 private:
  std::optional<DynamicLossScale> scale_;
  double value_ = 1;
};

}  // namespace roundpipe
