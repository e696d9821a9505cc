// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Either of the library's optimizers as one type.

#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/sgd.hpp>

#include <cstddef>
#include <span>
#include <variant>

namespace roundpipe::test {

/// Either of the library's optimizers, so one pipeline type runs both.
class AnyOptimizer {
 public:
  explicit AnyOptimizer(bool adam) {
    if (adam) {
      rule_ = AdamW({.rate = LearningRate::constant(0.01), .weight_decay = 0.1});
    } else {
      rule_ = Sgd({.rate = LearningRate::constant(0.05), .momentum = 0.5, .weight_decay = 0.01});
    }
  }
  [[nodiscard]] std::size_t state_arrays() const {
    return std::visit([](auto const& rule) -> std::size_t { return rule.state_arrays(); }, rule_);
  }
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    std::visit([&](auto const& rule) { rule.update(context, weights, gradients, states); }, rule_);
  }

 private:
  std::variant<AdamW, Sgd> rule_;
};

}  // namespace roundpipe::test
