// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Turns the tasks of a schedule into slots, in an order that satisfies every wait.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>

#include <vector>

namespace roundpipe {

/// A stage in a round: all its micro-batches, on one device.
struct Slot {
  StageId stage;
  RoundId round;
  DeviceId device;
  SlotId previous;  ///< The slot before on the same device, in this call; or none.
  SlotId next;      ///< The slot after on the same device, in this call; or none.
};

namespace detail {

/// The tasks of one slot, in the only order that `Pipeline` runs.
[[nodiscard]] std::vector<Task> slot_tasks(ScheduleShape const& shape,
                                           StageId stage,
                                           RoundId round);

}  // namespace detail

/// The slots of a call in issue order: a slot comes after the previous slot on its device, and
/// after the previous stage in its round.
/// \throws Error (unsupported) when the micro-batches of a stage in a round are not consecutive and
/// in order on one device; (invalid_argument) when a slot is missing or repeated, or when the lists
/// cannot be run.
[[nodiscard]] std::vector<Slot> order_slots(ScheduleShape const& shape, DeviceTasks const& tasks);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/slot_order.ipp>
#endif
