// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Walks through the windows of AdaWS with a clock, and finds what stalls.

#include <roundpipe/adaws/adaws_problem.hpp>
#include <roundpipe/config.hpp>

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
/// Windows take entries in turn: all of them of parameters, those that run backward of gradients.
/// Transfer i is what happens in an entry between two windows: the gradients of the first come
/// down, the parameters of the second go up. It begins when the first window ends, behind the
/// transfers before it, and activations go first. The walk checks finishTransfer_i <
/// startCompute_{i+W}, with R_param and R_grad for W, and waits where this does not hold. At the
/// start the parameters of R_param windows are there. The walk counts no bytes of memory.
/// \throws Error (invalid_argument) as \ref adaws_windows does, and for a configuration without
///         chunks, or without entries of parameters or gradients.
[[nodiscard]] AdawsWalk walk_adaws(AdawsProblem const& problem,
                                   AdawsConfiguration const& configuration);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/adaws/impl/adaws_walk.ipp>
#endif
