// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Walks through the windows of AdaWS with a clock, and finds what stalls.

#include <roundpipe/config.hpp>
#include <roundpipe/plan/adaws_problem.hpp>

namespace roundpipe {

/// What a walk over the layers has found.
struct AdawsWalk {
  double seconds = 0;
  double stalled_s = 0;  ///< Of these, without compute.

  /// Whether it stalled for longer than sums are rounded.
  [[nodiscard]] bool stalls() const noexcept { return stalled_s > 1e-9 * seconds; }
};
/// \brief Walks through the rounds of \p configuration, window by window, with one clock.
///
/// Transfer i carries what layers hand over in an entry: the gradients of window i down, and the
/// parameters of window i + R_param up. It begins when window i ends, behind the transfers before
/// it, and activations go first. The walk checks finishTransfer_i < startCompute_{i+W}, with R_grad
/// and R_param for W, and waits where this does not hold. At the start, R_param layers are there.
/// It knows links alone, no bytes. \pre The rings of parameters and gradients have entries.
[[nodiscard]] AdawsWalk walk_adaws(AdawsProblem const& problem,
                                   AdawsConfiguration const& configuration);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/adaws_walk.ipp>
#endif
