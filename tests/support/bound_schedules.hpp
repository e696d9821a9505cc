// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Helpers for the tests of schedules that bind stages to devices.

#include <roundpipe/concepts/schedule.hpp>
#include <support/schedule_refusals.hpp>
#include <support/task_simulation.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace roundpipe::test {

/// All small shapes that \p wanted accepts, whose backward stages mirror the forward ones: fused,
/// not fused, and forward-only.
inline std::vector<ScheduleShape> bound_shapes(
    std::function<bool(ScheduleShape const&)> const& wanted = [](auto const&) { return true; }) {
  std::vector<ScheduleShape> shapes;
  auto const add = [&](ScheduleShape const& shape) {
    if (wanted(shape)) {
      shapes.push_back(shape);
    }
  };
  for (std::size_t places = 1; places <= 8; ++places) {
    for (std::size_t devices = 1; devices <= 5; ++devices) {
      for (std::size_t micro_batches_per_round = 1; micro_batches_per_round <= 6;
           ++micro_batches_per_round) {
        for (std::size_t rounds = 1; rounds <= 2; ++rounds) {
          add(bound_shape(places, devices, micro_batches_per_round, true, rounds));
          add(bound_shape(places, devices, micro_batches_per_round, false, rounds));
          add({.forward_stages = places,
               .backward_stages = 0,
               .devices = devices,
               .micro_batches_per_round = micro_batches_per_round,
               .rounds = rounds});
        }
      }
    }
  }
  return shapes;
}

inline bool stage_per_device(ScheduleShape const& shape) {
  return shape.forward_stages <= shape.devices && shape.backward_stages <= shape.devices;
}

/// The run of a schedule in which every stage takes \p times.
template <Schedule S>
TaskRun run_equal(S const& schedule,
                  ScheduleShape const& shape,
                  StageTimes const& times,
                  double hand_over = 0) {
  return run_tasks(shape, schedule.tasks(shape), equal_times(shape, times), hand_over);
}

/// Checks that all tasks of \p shapes run, each once, on devices that keep their stages.
template <Schedule S>
void check_grid(S const& schedule, std::vector<ScheduleShape> const& shapes) {
  REQUIRE_FALSE(shapes.empty());
  for (auto const& shape : shapes) {
    CAPTURE(shape.forward_stages);
    CAPTURE(shape.backward_stages);
    CAPTURE(shape.devices);
    CAPTURE(shape.micro_batches_per_round);
    CAPTURE(shape.rounds);
    CAPTURE(shape.fused);
    REQUIRE(run_equal(schedule, shape, {1, 1, 2}, 0.5).complete);
    REQUIRE(schedule.advance(shape) == 0);
  }
}

/// Checks that the schedule refuses changes of \p good that make no sense.
template <Schedule S>
void check_refusals(S const& schedule, ScheduleShape const& good) {
  check_empty_shapes_are_refused(schedule, good);
  auto bad = good;
  --bad.backward_stages;  // now fewer than forward stages
  CHECK(refuses(schedule, bad));
}

}  // namespace roundpipe::test
