// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Adam with decoupled weight decay.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/element_blocks.hpp>
#include <roundpipe/optim/learning_rate.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <span>

namespace roundpipe {

struct AdamWOptions {
  LearningRate rate = LearningRate::constant(1e-3);
  double beta1 = 0.9;          ///< In [0, 1): what the mean of gradients keeps in a step.
  double beta2 = 0.999;        ///< In [0, 1): the same of squares; for language models often 0.95.
  double epsilon = 1e-8;       ///< Added to the root of the mean square.
  double weight_decay = 0.01;  ///< Times the rate; of \c DecayGroup::decayed parameters only.
};

/// \brief AdamW (Loshchilov & Hutter 2019, algorithm 2), with the rate as the schedule multiplier
/// of both its terms.
///
/// In step t, with g the gradient times the context's factor and a the rate of the step:
///
///     m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
///     w = w - a (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) - a decay w
///
/// What depends on the step alone is computed in double, elements in float. State arrays: m, v.
class AdamW {
 public:
  /// \throws Error (invalid_argument) when a constant is out of its domain.
  explicit AdamW(AdamWOptions options = {}) : options_(options) {
    auto const below_one = [](double beta) { return beta >= 0 && beta < 1; };
    require(below_one(options.beta1) && below_one(options.beta2),
            Errc::invalid_argument,
            "AdamW's betas are in [0, 1)");
    require(options.epsilon >= 0 && std::isfinite(options.epsilon),
            Errc::invalid_argument,
            "AdamW's epsilon is finite and not negative");
    require(options.weight_decay >= 0 && std::isfinite(options.weight_decay),
            Errc::invalid_argument,
            "AdamW's weight decay is finite and not negative");
  }

  /// With the other options' defaults.
  explicit AdamW(LearningRate const& rate) : AdamW(AdamWOptions{.rate = rate}) {}

  [[nodiscard]] AdamWOptions const& options() const noexcept { return options_; }

  [[nodiscard]] constexpr std::size_t state_arrays() const noexcept { return 2; }

  /// One step of a part of a parameter. The same bits however a parameter is cut into parts.
  /// \throws Error (invalid_argument) when sizes differ, there are not two states, or step is 0.
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    require(states.size() == state_arrays(), Errc::invalid_argument, "AdamW has two state arrays");
    auto const rate = options_.rate(context.step);
    auto const t = static_cast<double>(context.step);
    auto const keep1 = static_cast<float>(options_.beta1);
    auto const add1 = static_cast<float>(1 - options_.beta1);
    auto const keep2 = static_cast<float>(options_.beta2);
    auto const add2 = static_cast<float>(1 - options_.beta2);
    auto const step = static_cast<float>(rate / (1 - std::pow(options_.beta1, t)));
    auto const root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, t)));
    auto const epsilon = static_cast<float>(options_.epsilon);
    auto const decays = context.decay == DecayGroup::decayed;
    auto const decay = static_cast<float>(decays ? rate * options_.weight_decay : 0);
    auto const factor = context.gradient_factor;
    detail::for_each_block(
        gradients,
        std::array{weights, states[0], states[1]},
        [&](detail::ElementBlock const& gradient, std::array<detail::ElementBlock, 3>& blocks) {
          auto& [w, m, v] = blocks;
          detail::ElementBlock root;
          for (std::size_t i = 0; i < detail::element_block_size; ++i) {
            auto const g = gradient[i] * factor;
            m[i] = keep1 * m[i] + add1 * g;
            v[i] = keep2 * v[i] + add2 * (g * g);
            root[i] = v[i];
          }
          detail::square_roots(root);
          for (std::size_t i = 0; i < detail::element_block_size; ++i) {
            w[i] -= step * (m[i] / (root[i] * root_scale + epsilon)) + decay * w[i];
          }
        });
  }

 private:
  AdamWOptions options_;
};

static_assert(Optimizer<AdamW>);

}  // namespace roundpipe
