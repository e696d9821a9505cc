// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Groups of parameters that learn at rates of their own, decay, or rest: by a function of
/// the parameter and the step.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/parameter.hpp>

#include <cstdint>
#include <functional>

namespace roundpipe {

/// What a step does with a parameter, besides the optimizer's own constants.
struct ParameterGroup {
  double rate = 1;      ///< Multiplies the learning rate.
  double decay = 1;     ///< Multiplies the weight decay.
  bool frozen = false;  ///< The step leaves weights and states as they are.
};

/// The group of a parameter in a step. Several threads ask, and the answer is always the same.
using ParameterGroups = std::function<ParameterGroup(ParameterInfo const&, std::uint64_t step)>;

/// The group that a layer declares: weight decay for \c DecayGroup::decayed parameters only.
[[nodiscard]] ParameterGroup declared_group(ParameterInfo const& parameter, std::uint64_t step);

/// The group of an update.
/// \throws Error (invalid_argument) for factors that are negative or not finite; the message names
///         the parameter.
[[nodiscard]] ParameterGroup group_of(ParameterGroups const& groups, UpdateContext const& context);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/parameter_group.ipp>
#endif
