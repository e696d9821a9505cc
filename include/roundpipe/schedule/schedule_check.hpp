// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Checks the answers of a schedule.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>
#include <string>

namespace roundpipe {

/// "the recompute of stage 3 for micro-batch 1 of round 0".
[[nodiscard]] std::string to_string(Task const& task);

/// \throws Error (invalid_argument) where \p tasks are not all tasks of a call of \p shape, as rule
///         1 of \ref Schedule says.
void check(ScheduleShape const& shape, DeviceTasks const& tasks);

/// `advance(shape)` of \p schedule.
/// \throws Error (invalid_argument) for a number that rule 2 of \ref Schedule excludes.
template <Schedule S>
[[nodiscard]] std::size_t advance_of(S const& schedule, ScheduleShape const& shape) {
  std::size_t const advance = schedule.advance(shape);
  if (advance >= shape.devices) {
    throw broken_rule(
        "Schedule::advance",
        2,
        "it is " + std::to_string(advance) + " with " + std::to_string(shape.devices) + " devices");
  }
  return advance;
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/schedule_check.ipp>
#endif
