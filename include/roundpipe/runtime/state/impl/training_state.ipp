// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/runtime/state/training_state.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe {

namespace detail {

[[noreturn]] ROUNDPIPE_INLINE void refuse_parameter(std::string const& name,
                                                    std::string const& why) {
  throw Error(Errc::invalid_argument, "parameter " + name + " " + why);
}

/// Refuses \p given, \p what of parameter \p name, unless it is like \p own, which may be a part,
/// and has all bytes.
ROUNDPIPE_INLINE void require_like(HostTensor const& own,
                                   HostTensor const& given,
                                   std::string const& name,
                                   std::string const& what) {
  auto const text = [](HostTensor const& tensor) {
    return std::string(name_of(tensor.dtype)) + to_string(tensor.shape);
  };
  if (given.shape != own.shape || given.dtype != own.dtype) {
    refuse_parameter(name,
                     "has " + what + " of " + text(own) + ", but in the state of " + text(given));
  }
  auto const bytes = own.shape.size() * size_of(own.dtype);
  if (given.bytes.size() != bytes) {
    refuse_parameter(name,
                     "has " + what + " of " + std::to_string(bytes) +
                         " bytes, but in the state of " + std::to_string(given.bytes.size()));
  }
}

}  // namespace detail

ROUNDPIPE_INLINE TrainingPosition continued_position(TrainingPosition position,
                                                     std::uint64_t seed,
                                                     int staleness) {
  if (position.seed != seed) {
    throw Error(Errc::invalid_argument,
                "the state is of a training with seed " + std::to_string(position.seed) +
                    ", the trainer has seed " + std::to_string(seed));
  }
  require(position.visible_step <= position.step && position.step <= position.visible_step + 1 &&
              position.skipped_steps <= position.step,
          Errc::invalid_argument,
          "the numbers of steps in a state contradict each other");
  if (auto const& scale = position.loss_scale) {
    require(scale->recorded_steps <= position.step &&
                position.step <= scale->recorded_steps + position.overflowed.size(),
            Errc::invalid_argument,
            "the loss scale of a state follows from all steps but the last two");
  }
  if (staleness == 0) {
    position.visible_step = position.step;
  }
  return position;
}

ROUNDPIPE_INLINE std::vector<ParameterState const*> match_parameters(
    std::vector<ParameterState> const& own,
    TrainingState const& state,
    TrainingPosition const& position) {
  std::map<std::string_view, ParameterState const*> given;
  for (auto const& parameter : state.parameters) {
    if (!given.emplace(parameter.name, &parameter).second) {
      detail::refuse_parameter(parameter.name, "is in the state twice");
    }
  }
  std::vector<ParameterState const*> result;
  for (auto const& parameter : own) {
    auto const& name = parameter.name;
    auto const found = given.find(name);
    if (found == given.end()) {
      detail::refuse_parameter(name, "is missing from the state");
    }
    auto const& from = *found->second;
    if (!from.parts.empty()) {
      detail::refuse_parameter(
          name,
          "is in the state of one of " + std::to_string(from.parts.size()) +
              " ranks, which has a part of it; a snapshot that all ranks write "
              "has all of it");
    }
    if (from.frozen != parameter.frozen) {
      detail::refuse_parameter(name,
                               from.frozen ? "is trained, but in the state frozen"
                                           : "is frozen, but in the state trained");
    }
    if (from.optimizer.size() != parameter.optimizer.size()) {
      detail::refuse_parameter(name,
                               "has " + std::to_string(parameter.optimizer.size()) +
                                   " optimizer states, but in the state " +
                                   std::to_string(from.optimizer.size()));
    }
    detail::require_like(parameter.weights, from.weights, name, "weights");
    for (std::size_t s = 0; s < from.optimizer.size(); ++s) {
      detail::require_like(
          parameter.optimizer[s], from.optimizer[s], name, "optimizer state " + std::to_string(s));
    }
    if (!parameter.frozen && position.is_stale()) {
      detail::require_like(parameter.visible, from.visible, name, "visible weights");
    }
    result.push_back(&from);
    given.erase(found);
  }
  if (!given.empty()) {
    detail::refuse_parameter(std::string(given.begin()->first),
                             "of the state is none of the model's");
  }
  return result;
}

}  // namespace roundpipe
