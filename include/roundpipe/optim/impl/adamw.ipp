// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/learning_rate.hpp>

#include <cmath>

namespace roundpipe {

ROUNDPIPE_INLINE AdamW::AdamW(AdamWOptions options) : options_(options) {
  auto const below_one = [](double beta) { return beta >= 0 && beta < 1; };
  require(below_one(options.beta1) && below_one(options.beta2),
          Errc::invalid_argument,
          "AdamW's betas must be in [0, 1)");
  require(options.epsilon >= 0 && std::isfinite(options.epsilon),
          Errc::invalid_argument,
          "AdamW's epsilon must be finite and not negative");
  require(options.weight_decay >= 0 && std::isfinite(options.weight_decay),
          Errc::invalid_argument,
          "AdamW's weight decay must be finite and not negative");
}

}  // namespace roundpipe
