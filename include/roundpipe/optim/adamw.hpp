// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Adam with decoupled weight decay.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/simd.hpp>
#include <roundpipe/optim/learning_rate.hpp>

#include <cmath>
#include <cstddef>
#include <span>

namespace roundpipe {

namespace detail {

/// The element-wise part of AdamW's step. Rounds each operation to float, in the order of the
/// formula.
struct AdamWElements {
  float const* gradients = nullptr;
  float* weights = nullptr;
  float* means = nullptr;
  float* squares = nullptr;
  float factor, keep1, add1, keep2, add2, step, root_scale, epsilon, decay;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i, std::size_t count) const noexcept {
    using Floats = typename S::Floats;
    S::prefetch(means, i);
    S::prefetch(squares, i);
    S::prefetch(weights, i);
    Floats g, w, m, v;
    S::load(g, gradients + i, count);
    S::load(m, means + i, count);
    S::load(v, squares + i, count);
    S::load(w, weights + i, count);

    g = g * factor;
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
    Floats move = step * (m / (root + epsilon));
    Floats shrink = decay * w;
    S::rounded(move);
    S::rounded(shrink);
    w = w - (move + shrink);

    S::store(means + i, m, count);
    S::store(squares + i, v, count);
    S::store(weights + i, w, count);
  }
};

}  // namespace detail

struct AdamWOptions {
  LearningRate rate = LearningRate::constant(1e-3);
  double beta1 = 0.9;          ///< In [0, 1): the share of the mean of gradients that a step keeps.
  double beta2 = 0.999;        ///< In [0, 1): the same for squares; for language models often 0.95.
  double epsilon = 1e-8;       ///< Added to the root of the mean square.
  double weight_decay = 0.01;  ///< Times the rate; for \c DecayGroup::decayed parameters only.
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
  /// \throws Error (invalid_argument) for an invalid constant.
  explicit AdamW(AdamWOptions options = {});

  /// Uses the defaults of the other options.
  explicit AdamW(LearningRate const& rate) : AdamW(AdamWOptions{.rate = rate}) {}

  [[nodiscard]] AdamWOptions const& options() const noexcept { return options_; }

  [[nodiscard]] constexpr std::size_t state_arrays() const noexcept { return 2; }

  /// A step as a function of weights, gradients and states. It computes the part that depends on \p
  /// context alone once for many parts. \throws Error (invalid_argument) for step 0.
  [[nodiscard]] auto prepared(UpdateContext const& context) const {
    auto const rate = options_.rate(context.step);
    auto const t = static_cast<double>(context.step);
    auto const decays = context.decay == DecayGroup::decayed;
    detail::AdamWElements const elements{
        .factor = context.gradient_factor,
        .keep1 = static_cast<float>(options_.beta1),
        .add1 = static_cast<float>(1 - options_.beta1),
        .keep2 = static_cast<float>(options_.beta2),
        .add2 = static_cast<float>(1 - options_.beta2),
        .step = static_cast<float>(rate / (1 - std::pow(options_.beta1, t))),
        .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, t))),
        .epsilon = static_cast<float>(options_.epsilon),
        .decay = static_cast<float>(decays ? rate * options_.weight_decay : 0)};
    return [elements](HostSpan<float> weights,
                      HostSpan<float const> gradients,
                      std::span<HostSpan<float> const> states) {
      auto const size = weights.size();
      require(states.size() == 2, Errc::invalid_argument, "AdamW needs two state arrays");
      require(gradients.size() == size && states[0].size() == size && states[1].size() == size,
              Errc::invalid_argument,
              "an update's weights, gradients and states must have the same number of elements");
      auto part = elements;
      part.gradients = gradients.data();
      part.weights = weights.data();
      part.means = states[0].data();
      part.squares = states[1].data();
      detail::for_each_element(size, part);
    };
  }

  /// One step of a part of a parameter. The bits do not depend on the cuts of a parameter.
  /// \throws Error (invalid_argument) when sizes differ, there are not two states, or step is 0.
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    prepared(context)(weights, gradients, states);
  }

 private:
  AdamWOptions options_;
};

static_assert(Optimizer<AdamW>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/adamw.ipp>
#endif
