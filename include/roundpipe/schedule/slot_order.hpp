// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Turns the tasks of a schedule into slots, in an order that satisfies every wait.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>

#include <span>
#include <vector>

namespace roundpipe {

/// A stage in a round: all its micro-batches, on one device.
struct Slot {
  StageId stage;
  RoundId round;
  DeviceId device{};
  SlotId previous{};  ///< The slot before on the same device, in this call; or none. Of two that
                      ///< take turns: for the first of two the first, else the second.
  SlotId next{};      ///< The slot after on the same device, in this call, or the first of two; or
                      ///< none.
  SlotId partner{};   ///< The slot that takes turns with this one, micro-batch by micro-batch, the
                      ///< one with the smaller id first; or none.
};

namespace detail {

/// The tasks of one slot, in the only order that `Pipeline` runs.
[[nodiscard]] std::vector<Task> slot_tasks(ScheduleShape const& shape,
                                           StageId stage,
                                           RoundId round);

/// The tasks of \p slots, of which \c stage and \c round count: they take turns.
[[nodiscard]] std::vector<Task> turn_tasks(ScheduleShape const& shape, std::span<Slot const> slots);

}  // namespace detail

/// The slots of a call in issue order: a slot comes after the previous slot on its device, and
/// after the previous stage in its round.
/// \throws Error (invalid_argument) where \p tasks break rule 1 or 3 of \ref Schedule,
/// (unsupported)
///         where they break rule 4.
[[nodiscard]] std::vector<Slot> order_slots(ScheduleShape const& shape, DeviceTasks const& tasks);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/slot_order.ipp>
#endif
