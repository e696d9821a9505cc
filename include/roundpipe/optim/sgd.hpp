// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Stochastic gradient descent, with or without momentum.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/learning_rate.hpp>

#include <cstddef>
#include <span>

namespace roundpipe {

struct SgdOptions {
  LearningRate rate = LearningRate::constant(1e-2);
  double momentum = 0;      ///< In [0, 1); 0: none, and no state array.
  double weight_decay = 0;  ///< Added to gradients; for \c DecayGroup::decayed parameters only.
  bool nesterov = false;    ///< Looks ahead; needs a momentum.
};

/// \brief Gradient descent with heavy-ball (Polyak 1964) or Nesterov momentum, in the form of
/// Sutskever et al. 2013; the rate is not part of the velocity.
/// In a step, g is the gradient times the context's factor plus decay w, and a is the rate:
///
///     u = momentum u + g        w = w - a u            (Nesterov: w = w - a (g + momentum u))
/// State arrays: u with momentum, otherwise none. Without momentum, u is g.
class Sgd {
 public:
  /// \throws Error (invalid_argument) for an invalid constant.
  explicit Sgd(SgdOptions options = {});

  /// Uses the defaults of the other options.
  explicit Sgd(LearningRate const& rate) : Sgd(SgdOptions{.rate = rate}) {}

  [[nodiscard]] SgdOptions const& options() const noexcept { return options_; }

  [[nodiscard]] constexpr std::size_t state_arrays() const noexcept {
    return options_.momentum > 0 ? 1 : 0;
  }

  /// One step of a part of a parameter. The bits do not depend on the cuts of a parameter.
  /// \throws Error (invalid_argument) when sizes or the number of states differ, or step is 0.
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const;

 private:
  SgdOptions options_;
};

static_assert(Optimizer<Sgd>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/sgd.ipp>
#endif
