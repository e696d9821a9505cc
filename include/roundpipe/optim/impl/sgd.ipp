// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/simd.hpp>
#include <roundpipe/optim/learning_rate.hpp>
#include <roundpipe/optim/sgd.hpp>

#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

namespace roundpipe {

namespace detail {

/// The element-wise part of SGD's step. Rounds each operation to float, in the order of the
/// formula.
template <bool Momentum>
struct SgdElements {
  float const* gradients;
  float* weights;
  float* velocities;  ///< Null without momentum.
  float factor, rate, decay, momentum;
  float of_gradient, of_velocity;  ///< The weights of the two terms of a step.

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i, std::size_t count) const noexcept {
    using Floats = typename S::Floats;
    S::prefetch(weights, i);
    Floats g, w;
    S::load(g, gradients + i, count);
    S::load(w, weights + i, count);
    g = g * factor;
    Floats shrink = decay * w;
    S::rounded(g);
    S::rounded(shrink);
    g = g + shrink;
    Floats move = g;
    if constexpr (Momentum) {
      S::prefetch(velocities, i);
      Floats u;
      S::load(u, velocities + i, count);
      u = momentum * u;
      S::rounded(u);
      u = u + g;
      S::store(velocities + i, u, count);
      move = of_gradient * g;
      u = of_velocity * u;
      S::rounded(move);
      S::rounded(u);
      move = move + u;
    }
    move = rate * move;
    S::rounded(move);
    w = w - move;
    S::store(weights + i, w, count);
  }
};

}  // namespace detail

ROUNDPIPE_INLINE Sgd::Sgd(SgdOptions options) : options_(options) {
  require(options.momentum >= 0 && options.momentum < 1,
          Errc::invalid_argument,
          "SGD's momentum must be in [0, 1)");
  require(options.weight_decay >= 0 && std::isfinite(options.weight_decay),
          Errc::invalid_argument,
          "SGD's weight decay must be finite and not negative");
  require(!options.nesterov || options.momentum > 0,
          Errc::invalid_argument,
          "Nesterov's look-ahead needs a momentum");
}

ROUNDPIPE_INLINE void Sgd::update(UpdateContext const& context,
                                  HostSpan<float> weights,
                                  HostSpan<float const> gradients,
                                  std::span<HostSpan<float> const> states) const {
  require(states.size() == state_arrays(),
          Errc::invalid_argument,
          "SGD needs one state array with momentum, and none without");
  auto const size = weights.size();
  require(gradients.size() == size && (states.empty() || states[0].size() == size),
          Errc::invalid_argument,
          "an update's weights, gradients and states must have the same number of elements");
  auto const decays = context.decay == DecayGroup::decayed;
  auto const run = [&]<bool Momentum>(std::bool_constant<Momentum>) {
    auto const momentum = static_cast<float>(options_.momentum);
    detail::for_each_element(
        size,
        detail::SgdElements<Momentum>{
            .gradients = gradients.data(),
            .weights = weights.data(),
            .velocities = Momentum ? states[0].data() : nullptr,
            .factor = context.gradient_factor,
            .rate = static_cast<float>(options_.rate(context.step)),
            .decay = static_cast<float>(decays ? options_.weight_decay : 0),
            .momentum = momentum,
            .of_gradient = options_.nesterov ? 1.0F : 0.0F,  // a factor avoids a branch in the loop
            .of_velocity = options_.nesterov ? momentum : 1.0F});
  };
  states.empty() ? run(std::false_type{}) : run(std::true_type{});
}

}  // namespace roundpipe
