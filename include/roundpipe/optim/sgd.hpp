// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Stochastic gradient descent, with or without momentum.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/element_blocks.hpp>
#include <roundpipe/optim/learning_rate.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <span>

namespace roundpipe {

struct SgdOptions {
  LearningRate rate = LearningRate::constant(1e-2);
  double momentum = 0;      ///< In [0, 1); 0: none, and no state array.
  double weight_decay = 0;  ///< Added to gradients; of \c DecayGroup::decayed parameters only.
  bool nesterov = false;    ///< Looks ahead; needs a momentum.
};

/// \brief Gradient descent with heavy-ball (Polyak 1964) or Nesterov momentum, in the form of
/// Sutskever et al. 2013 with the rate outside of the velocity.
///
/// In a step, with g the gradient times the context's factor plus decay w, and a the rate:
///
///     u = momentum u + g        w = w - a u            (Nesterov: w = w - a (g + momentum u))
///
/// State arrays: u when there is a momentum, else none. Without momentum, u is g.
class Sgd {
 public:
  /// \throws Error (invalid_argument) when a constant is out of its domain.
  explicit Sgd(SgdOptions options = {}) : options_(options) {
    require(options.momentum >= 0 && options.momentum < 1,
            Errc::invalid_argument,
            "SGD's momentum is in [0, 1)");
    require(options.weight_decay >= 0 && std::isfinite(options.weight_decay),
            Errc::invalid_argument,
            "SGD's weight decay is finite and not negative");
    require(!options.nesterov || options.momentum > 0,
            Errc::invalid_argument,
            "Nesterov's look-ahead needs a momentum");
  }

  /// With the other options' defaults.
  explicit Sgd(LearningRate const& rate) : Sgd(SgdOptions{.rate = rate}) {}

  [[nodiscard]] SgdOptions const& options() const noexcept { return options_; }

  [[nodiscard]] constexpr std::size_t state_arrays() const noexcept {
    return options_.momentum > 0 ? 1 : 0;
  }

  /// One step of a part of a parameter. The same bits however a parameter is cut into parts.
  /// \throws Error (invalid_argument) when sizes or the number of states differ, or step is 0.
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    require(states.size() == state_arrays(),
            Errc::invalid_argument,
            "SGD has one state array with momentum, else none");
    auto const rate = static_cast<float>(options_.rate(context.step));
    auto const momentum = static_cast<float>(options_.momentum);
    auto const of_gradient = options_.nesterov ? 1.0F : 0.0F;  // and not a branch in the loop
    auto const of_velocity = options_.nesterov ? momentum : 1.0F;
    auto const decays = context.decay == DecayGroup::decayed;
    auto const decay = static_cast<float>(decays ? options_.weight_decay : 0);
    auto const factor = context.gradient_factor;
    if (states.empty()) {
      detail::for_each_block(
          gradients,
          std::array{weights},
          [&](detail::ElementBlock const& gradient, std::array<detail::ElementBlock, 1>& blocks) {
            auto& [w] = blocks;
            for (std::size_t i = 0; i < detail::element_block_size; ++i) {
              w[i] -= rate * (gradient[i] * factor + decay * w[i]);
            }
          });
      return;
    }
    detail::for_each_block(
        gradients,
        std::array{weights, states[0]},
        [&](detail::ElementBlock const& gradient, std::array<detail::ElementBlock, 2>& blocks) {
          auto& [w, u] = blocks;
          for (std::size_t i = 0; i < detail::element_block_size; ++i) {
            auto const g = gradient[i] * factor + decay * w[i];
            u[i] = momentum * u[i] + g;
            w[i] -= rate * (of_gradient * g + of_velocity * u[i]);
          }
        });
  }

 private:
  SgdOptions options_;
};

static_assert(Optimizer<Sgd>);

}  // namespace roundpipe
