// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/learning_rate.hpp>

#include <cmath>

namespace roundpipe {

ROUNDPIPE_INLINE void AdamW::check(AdamWOptions const& options) {
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
  require(options.groups != nullptr, Errc::invalid_argument, "AdamW needs a function of groups");
}

ROUNDPIPE_INLINE detail::AdamWRule AdamW::rule(UpdateContext const& context) const {
  auto const group = group_of(options_.groups, context);
  auto const rate = options_.rate(context.step) * group.rate;
  auto const t = static_cast<double>(context.step);
  return {.factor = context.gradient_factor,
          .keep1 = static_cast<float>(options_.beta1),
          .add1 = static_cast<float>(1 - options_.beta1),
          .keep2 = static_cast<float>(options_.beta2),
          .add2 = static_cast<float>(1 - options_.beta2),
          .rate = static_cast<float>(rate / (1 - std::pow(options_.beta1, t))),
          .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, t))),
          .epsilon = static_cast<float>(options_.epsilon),
          .decay = static_cast<float>(rate * options_.weight_decay * group.decay)};
}

}  // namespace roundpipe
