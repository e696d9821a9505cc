// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a plan has to know of an optimizer.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/core/parameter.hpp>

#include <cstddef>
#include <functional>

namespace roundpipe {

struct OptimizerNeeds {
  std::size_t state_arrays = 0;
  /// Whether the optimizer wants all of a parameter at once. None: it takes parts of each.
  std::function<bool(ParameterInfo const&)> updates_whole{};
};

/// \throws Error (invalid_argument) for a number of state arrays that breaks rule 1 of \ref
///         Optimizer.
template <Optimizer O>
[[nodiscard]] OptimizerNeeds needs_of(O const& optimizer) {
  OptimizerNeeds needs{state_arrays(optimizer)};
  if constexpr (HasWholeUpdates<O>) {
    needs.updates_whole = [optimizer](ParameterInfo const& parameter) {
      return updates_whole(optimizer, parameter);
    };
  }
  return needs;
}

}  // namespace roundpipe
