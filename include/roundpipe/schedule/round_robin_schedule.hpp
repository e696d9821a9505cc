// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Deals stages to devices round robin, as slots.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// \brief Slot i of a call, counted over its rounds, runs on relative device i mod N; two slots
/// that take turns count as one.
/// A slot is a stage in a round: all its micro-batches, one after another. Each round runs the
/// forward stages, then the backward stages. No stage is bound to a device, so stages may take
/// different times, and any number of stages works (RoundPipe, arXiv:2604.27085). The next call
/// continues with the device after the last slot's device.
///
/// Where `shape.overlaps_rounds`, the forward stages of every round but the first are spread evenly
/// over the backward stages of the round before, and take turns with them. So what a forward saves
/// has the time of a backward, too, to go to the host.
class RoundRobinSchedule {
 public:
  /// The tasks of each relative device, in its order. A shape without backward stages is a
  /// forward-only call. \throws Error (invalid_argument) when there are no stages, devices,
  /// micro-batches or rounds.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const;

  /// By how many devices the slots of the next call are shifted: (S R) mod N, where none take
  /// turns. \throws Error (invalid_argument) like \ref tasks().
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const;

 private:
  /// What runs one after another: a slot, or two that take turns.
  [[nodiscard]] static std::vector<std::vector<Slot>> turns(ScheduleShape const& shape);
};

static_assert(Schedule<RoundRobinSchedule>);

/// Whether \p schedule deals the slots of \p shape one by one as \ref RoundRobinSchedule does, and
/// none takes turns.
template <Schedule S>
[[nodiscard]] bool deals_round_robin(S const& schedule, ScheduleShape const& shape) {
  constexpr RoundRobinSchedule deals;
  return !shape.overlaps_rounds && schedule.advance(shape) == deals.advance(shape) &&
         schedule.tasks(shape) == deals.tasks(shape);
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/round_robin_schedule.ipp>
#endif
