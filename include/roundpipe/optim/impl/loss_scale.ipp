// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/loss_scale.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace roundpipe {

ROUNDPIPE_INLINE DynamicLossScale::DynamicLossScale(LossScaleOptions const& options, int staleness)
    : options_(options), scale_(options.initial), lag_(1 + static_cast<std::size_t>(staleness)) {
  require(
      std::isfinite(options.initial) && options.smallest > 0 && options.initial >= options.smallest,
      Errc::invalid_argument,
      "a loss scale must begin at a finite number, not below its smallest");
  require(options.growth > 1 && options.backoff > 0 && options.backoff < 1 &&
              options.growth_interval > 0,
          Errc::invalid_argument,
          "a loss scale's growth must be above 1, its backoff in (0, 1), its interval positive");
}

ROUNDPIPE_INLINE void DynamicLossScale::record(bool overflowed) {
  ++recorded_;
  if (!overflowed) {
    if (++clean_ == options_.growth_interval && std::isfinite(scale_ * options_.growth)) {
      scale_ *= options_.growth;
      clean_ = 0;
    }
    return;
  }
  clean_ = 0;
  require(scale_ > options_.smallest,
          Errc::not_finite,
          "gradients are NaN or infinite at the smallest loss scale");
  scale_ = std::max(options_.smallest, scale_ * options_.backoff);
}

ROUNDPIPE_INLINE void DynamicLossScale::restore(LossScaleState const& state) {
  require(std::isfinite(state.value) && state.value >= options_.smallest,
          Errc::invalid_argument,
          "a loss scale goes on from a finite number, not below its smallest");
  scale_ = state.value;
  clean_ = static_cast<std::size_t>(state.clean_steps);
  recorded_ = static_cast<std::size_t>(state.recorded_steps);
}

}  // namespace roundpipe
