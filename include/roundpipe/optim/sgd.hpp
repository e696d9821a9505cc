// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Stochastic gradient descent, with or without momentum.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/optim/element_rule.hpp>
#include <roundpipe/optim/learning_rate.hpp>
#include <roundpipe/optim/parameter_group.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace roundpipe {

namespace detail {

/// The element rule of SGD's step. Rounds each operation to float, in the order of the formula.
template <bool Momentum>
struct SgdRule {
  static constexpr std::size_t states = Momentum ? 1 : 0;

  float factor, rate, decay, momentum;
  float of_gradient, of_velocity;  ///< The weights of the two terms of a step.

  template <class S>
  [[gnu::always_inline]] void step(typename S::Floats& w,
                                   typename S::Floats const& gradient,
                                   [[maybe_unused]] typename S::Floats* velocity) const noexcept {
    using Floats = typename S::Floats;
    Floats g = gradient * factor;
    Floats shrink = decay * w;
    S::rounded(g);
    S::rounded(shrink);
    g = g + shrink;
    Floats move = g;
    if constexpr (Momentum) {
      Floats u = momentum * *velocity;
      S::rounded(u);
      u = u + g;
      *velocity = u;
      move = of_gradient * g;
      u = of_velocity * u;
      S::rounded(move);
      S::rounded(u);
      move = move + u;
    }
    move = rate * move;
    S::rounded(move);
    w = w - move;
  }
};

}  // namespace detail

struct SgdOptions {
  LearningRate rate = LearningRate::constant(1e-2);
  double momentum = 0;      ///< In [0, 1); 0: none, and no state array.
  double weight_decay = 0;  ///< Its product with the weights is added to gradients.
  bool nesterov = false;    ///< Looks ahead; needs a momentum.
  /// The group of each parameter in each step.
  ParameterGroups groups = declared_group;
};

/// \brief Gradient descent with heavy-ball (Polyak 1964) or Nesterov momentum, in the form of
/// Sutskever et al. 2013; the rate is not part of the velocity.
/// In a step, g is the gradient times the context's factor plus decay w, and a is the rate:
///
///     u = momentum u + g        w = w - a u            (Nesterov: w = w - a (g + momentum u))
/// State arrays: u with momentum, otherwise none. Without momentum, u is g.
class Sgd {
 public:
  Sgd() : Sgd(SgdOptions{}) {}

  /// A template, so that `Sgd({})` is clear: copies come first.
  /// \throws Error (invalid_argument) for an invalid constant.
  template <std::same_as<SgdOptions> Options = SgdOptions>
  explicit Sgd(Options options) : options_(std::move(options)) {
    check(options_);
  }

  /// Uses the defaults of the other options.
  explicit Sgd(LearningRate const& rate) : Sgd(SgdOptions{.rate = rate}) {}

  [[nodiscard]] SgdOptions const& options() const noexcept { return options_; }

  [[nodiscard]] constexpr std::size_t state_arrays() const noexcept {
    return options_.momentum > 0 ? 1 : 0;
  }

  /// Whether step \p step leaves \p parameter as it is: its group says so.
  [[nodiscard]] bool freezes(ParameterInfo const& parameter, std::uint64_t step) const {
    return options_.groups(parameter, step).frozen;
  }

  /// Calls \p f with the element rule of a step. \throws Error (invalid_argument) for step 0.
  template <class F>
  void with_rule(UpdateContext const& context, F const& f) const {
    options_.momentum > 0 ? f(rule<true>(context)) : f(rule<false>(context));
  }

  /// One step of a part of a parameter. The bits do not depend on the cuts of a parameter.
  /// \throws Error (invalid_argument) when sizes or the number of states differ, or step is 0.
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    with_rule(context,
              [&](auto const& rule) { detail::update_floats(rule, weights, gradients, states); });
  }

 private:
  template <bool Momentum>
  [[nodiscard]] detail::SgdRule<Momentum> rule(UpdateContext const& context) const {
    auto const group = group_of(options_.groups, context);
    auto const momentum = static_cast<float>(options_.momentum);
    return {.factor = context.gradient_factor,
            .rate = static_cast<float>(options_.rate(context.step) * group.rate),
            .decay = static_cast<float>(options_.weight_decay * group.decay),
            .momentum = momentum,
            .of_gradient = options_.nesterov ? 1.0F : 0.0F,  // a factor avoids a branch in the loop
            .of_velocity = options_.nesterov ? momentum : 1.0F};
  }

  static void check(SgdOptions const& options);

  SgdOptions options_;
};

static_assert(Optimizer<Sgd>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/sgd.ipp>
#endif
