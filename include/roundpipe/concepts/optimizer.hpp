// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What updates the optimizer copy of a parameter from its gradient, on the host.

#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/span.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace roundpipe {

/// What an update needs to know besides its arrays.
struct UpdateContext {
  std::uint64_t step = 1;     ///< The number of this step, from 1.
  float gradient_factor = 1;  ///< Applied to every gradient first (clipping, unscaling).
  DecayGroup decay = DecayGroup::decayed;
};

/// \brief An element-wise update rule.
///
/// Semantics:
/// 1. `state_arrays()` arrays of a parameter's size belong to it, at most 8; they begin as zeros.
///    `update` sees them as fp32. Where states are kept in the parameter's type (see `StateType`),
///    they are rounded from one step to the next.
/// 2. `update(context, weights, gradients, states)` may be called for any consecutive part of a
///    parameter, for different parts at once from several threads, and gives the same bits however
///    the parts are cut; reason: the optimizer worker is parallel.
/// 3. `gradients` holds as many elements as `weights`, and each of `states` (there are
///    `state_arrays()`) too.
///
/// Satisfied by: `AdamW`, `Sgd`.
template <class O>
concept Optimizer =
    std::copy_constructible<O> && requires(O const& optimizer,
                                           UpdateContext const& context,
                                           HostSpan<float> weights,
                                           HostSpan<float const> gradients,
                                           std::span<HostSpan<float> const> states) {
      { optimizer.state_arrays() } -> std::convertible_to<std::size_t>;
      optimizer.update(context, weights, gradients, states);
    };

}  // namespace roundpipe
