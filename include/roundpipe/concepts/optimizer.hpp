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

/// The arguments of an update besides its arrays.
struct UpdateContext {
  std::uint64_t step = 1;     ///< The number of this step, from 1.
  float gradient_factor = 1;  ///< Multiplies every gradient first (clipping, unscaling).
  DecayGroup decay = DecayGroup::decayed;
};

/// \brief An element-wise update rule.
///
/// Semantics:
/// 1. Each parameter has `state_arrays()` state arrays of its size, at most 8, which begin as
///    zeros. `update` sees them as fp32. Where states are stored in the parameter's type (see
///    `StateType`), each step rounds them.
/// 2. `update(context, weights, gradients, states)` may be called for any consecutive part of a
///    parameter, for several parts at once from several threads. The bits do not depend on the
///    cuts; reason: several threads share the optimizer's work.
/// 3. `gradients` and each of the `state_arrays()` entries of `states` hold as many elements as
///    `weights`.
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
