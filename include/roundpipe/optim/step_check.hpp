// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Finds what an optimizer refuses of a step before the step writes anything.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/span.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace roundpipe {

/// Asks \p optimizer for all that it needs to update \p parameter in step \p step, and writes
/// nothing: rule 5 of \ref Optimizer.
/// \throws Error what the optimizer throws, behind the names of step and parameter;
///         (invalid_argument) where that is no Error.
template <Optimizer O>
void check_step(O const& optimizer, ParameterInfo const& parameter, std::uint64_t step) {
  try {
    if (freezes(optimizer, parameter, step)) {
      return;
    }
    UpdateContext const context{.step = step, .parameter = parameter};
    if constexpr (detail::HasElementRule<O>) {
      optimizer.with_rule(context, [](auto const&) {});
    } else if (!updates_whole(optimizer, parameter)) {
      // A part of one element, of an array of its own.
      float weight = 0;
      float const gradient = 0;
      std::array<float, max_update_states> values{};
      std::array<HostSpan<float>, max_update_states> states;
      for (std::size_t s = 0; s < states.size(); ++s) {
        states[s] = {&values[s], 1};
      }
      optimizer.update(context,
                       HostSpan<float>(&weight, 1),
                       HostSpan<float const>(&gradient, 1),
                       std::span<HostSpan<float> const>(states).first(state_arrays(optimizer)));
    }
  } catch (...) {
    throw current_error(
        "step " + std::to_string(step) + ", parameter '" + std::string(parameter.name) + "': ",
        Errc::invalid_argument);
  }
}

}  // namespace roundpipe
