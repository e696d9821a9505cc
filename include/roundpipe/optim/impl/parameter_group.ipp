// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/parameter_group.hpp>

#include <cmath>
#include <cstdint>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE ParameterGroup declared_group(ParameterInfo const& parameter,
                                               std::uint64_t /*step*/) {
  return {.decay = parameter.decay == DecayGroup::decayed ? 1.0 : 0.0};
}

ROUNDPIPE_INLINE ParameterGroup group_of(ParameterGroups const& groups,
                                         UpdateContext const& context) {
  auto const group = groups(context.parameter, context.step);
  auto const is_factor = [](double factor) { return std::isfinite(factor) && factor >= 0; };
  if (!is_factor(group.rate) || !is_factor(group.decay)) {
    throw Error(Errc::invalid_argument,
                "the group of parameter '" + std::string(context.parameter.name) +
                    "' multiplies the rate by " + std::to_string(group.rate) +
                    " and the decay by " + std::to_string(group.decay) +
                    "; both must be finite and not negative");
  }
  return group;
}

}  // namespace roundpipe
