// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/loss_scale.hpp>
#include <roundpipe/runtime/state/loss_scale_control.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace roundpipe {

ROUNDPIPE_INLINE LossScaleControl::LossScaleControl(std::optional<LossScaleOptions> const& options,
                                                    int staleness) {
  if (options) {
    scale_.emplace(*options, staleness);
  }
}

ROUNDPIPE_INLINE void LossScaleControl::adapt(
    std::uint64_t next_step, std::function<bool(std::uint64_t)> const& has_overflowed) {
  if (!scale_) {
    return;
  }
  auto const newest = scale_->newest_step(static_cast<std::size_t>(next_step));
  while (scale_->recorded() < newest) {
    scale_->record(has_overflowed(scale_->recorded() + 1));
  }
  value_ = scale_->value();
}

ROUNDPIPE_INLINE std::optional<LossScaleState> LossScaleControl::state() const {
  return scale_ ? std::optional(scale_->state()) : std::nullopt;
}

ROUNDPIPE_INLINE void LossScaleControl::restore(std::optional<LossScaleState> const& state) {
  require(scale_.has_value() == state.has_value(),
          Errc::invalid_argument,
          "a training goes on with a loss scale if it had one, else without");
  if (scale_) {
    scale_->restore(*state);
  }
}

ROUNDPIPE_INLINE void LossScaleControl::go_back(LossScaleControl const& earlier,
                                                std::uint64_t next_step) {
  if (scale_ && scale_->recorded() > scale_->newest_step(static_cast<std::size_t>(next_step))) {
    *this = earlier;
  }
}

}  // namespace roundpipe
