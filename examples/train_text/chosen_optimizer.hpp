// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The update rule of the command line, as one optimizer.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/learning_rate.hpp>
#include <roundpipe/optim/sgd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "options.hpp"

namespace train_text {

/// \brief AdamW or SGD; models roundpipe::Optimizer.
///
/// Both have less momentum than usual. With staleness 1 gradients come a step late. Where the loss
/// has curvature c, late gradients are stable only for rates below 1 / c, whatever the momentum of
/// AdamW (gradients in time: below 2 / c with no momentum, 38 / c with 0.9). Close to that limit,
/// oscillations fade more slowly with more momentum.
class ChosenOptimizer {
 public:
  explicit ChosenOptimizer(Options const& o) {
    auto const steps = static_cast<std::uint64_t>(o.steps);
    auto const peak = o.highest_rate();
    auto const rate = roundpipe::LearningRate::warmup_cosine(
        peak, std::max<std::uint64_t>(1, steps / 20), steps, peak / 10);
    constexpr double momentum = 0.5;
    if (o.optimizer == "sgd") {
      rule_ = roundpipe::Sgd({.rate = rate, .momentum = momentum});
    } else {
      rule_ =
          roundpipe::AdamW({.rate = rate, .beta1 = momentum, .beta2 = 0.95, .weight_decay = 0.1});
    }
  }

  [[nodiscard]] std::size_t state_arrays() const {
    return std::visit([](auto const& rule) -> std::size_t { return rule.state_arrays(); }, rule_);
  }
  void update(roundpipe::UpdateContext const& context,
              roundpipe::HostSpan<float> weights,
              roundpipe::HostSpan<float const> gradients,
              std::span<roundpipe::HostSpan<float> const> states) const {
    std::visit([&](auto const& rule) { rule.update(context, weights, gradients, states); }, rule_);
  }

 private:
  std::variant<roundpipe::AdamW, roundpipe::Sgd> rule_;
};

static_assert(roundpipe::Optimizer<ChosenOptimizer>);

}  // namespace train_text
