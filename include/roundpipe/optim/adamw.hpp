// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Adam with decoupled weight decay.

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

/// The element rule of AdamW's step. Rounds each operation to float, in the order of the formula.
struct AdamWRule {
  static constexpr std::size_t states = 2;

  float factor, keep1, add1, keep2, add2, rate, root_scale, epsilon, decay;

  template <class S>
  [[gnu::always_inline]] void step(typename S::Floats& w,
                                   typename S::Floats const& gradient,
                                   typename S::Floats* moments) const noexcept {
    using Floats = typename S::Floats;
    auto& m = moments[0];
    auto& v = moments[1];
    Floats g = gradient * factor;
    S::rounded(g);
    m = keep1 * m;
    Floats added = add1 * g;
    S::rounded(m);
    S::rounded(added);
    m = m + added;

    v = keep2 * v;
    added = g * g;
    S::rounded(added);
    added = add2 * added;
    S::rounded(v);
    S::rounded(added);
    v = v + added;

    Floats root = v;
    S::square_roots(root);
    root = root * root_scale;
    S::rounded(root);
    Floats move = rate * (m / (root + epsilon));
    Floats shrink = decay * w;
    S::rounded(move);
    S::rounded(shrink);
    w = w - (move + shrink);
  }
};

}  // namespace detail

struct AdamWOptions {
  LearningRate rate = LearningRate::constant(1e-3);
  double beta1 = 0.9;          ///< In [0, 1): the share of the mean of gradients that a step keeps.
  double beta2 = 0.999;        ///< In [0, 1): the same for squares; for language models often 0.95.
  double epsilon = 1e-8;       ///< Added to the root of the mean square.
  double weight_decay = 0.01;  ///< Times the rate.
  /// The group of each parameter in each step.
  ParameterGroups groups = declared_group;
};

/// \brief AdamW (Loshchilov & Hutter 2019, algorithm 2); the rate multiplies both terms as the
/// schedule multiplier.
/// In step t, g is the gradient times the context's factor, and a is the rate of the step:
///
///     m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
///     w = w - a (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) - a decay w
/// Scalars of a step are computed in double, elements in float. State arrays: m, v.
class AdamW {
 public:
  AdamW() : AdamW(AdamWOptions{}) {}

  /// A template, so that `AdamW({})` is clear: copies come first.
  /// \throws Error (invalid_argument) for an invalid constant.
  template <std::same_as<AdamWOptions> Options = AdamWOptions>
  explicit AdamW(Options options) : options_(std::move(options)) {
    check(options_);
  }

  /// Uses the defaults of the other options.
  explicit AdamW(LearningRate const& rate) : AdamW(AdamWOptions{.rate = rate}) {}

  [[nodiscard]] AdamWOptions const& options() const noexcept { return options_; }

  [[nodiscard]] constexpr std::size_t state_arrays() const noexcept { return 2; }

  /// Whether step \p step leaves \p parameter as it is: its group says so.
  [[nodiscard]] bool freezes(ParameterInfo const& parameter, std::uint64_t step) const {
    return options_.groups(parameter, step).frozen;
  }

  /// Calls \p f with the element rule of a step. \throws Error (invalid_argument) for step 0.
  template <class F>
  void with_rule(UpdateContext const& context, F const& f) const {
    f(rule(context));
  }

  /// One step of a part of a parameter. The bits do not depend on the cuts of a parameter.
  /// \throws Error (invalid_argument) when sizes differ, there are not two states, or step is 0.
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    detail::update_floats(rule(context), weights, gradients, states);
  }

 private:
  [[nodiscard]] detail::AdamWRule rule(UpdateContext const& context) const;

  static void check(AdamWOptions const& options);

  AdamWOptions options_;
};

static_assert(Optimizer<AdamW>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/adamw.ipp>
#endif
