// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Plans and simulates one schedule.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/simulate/bound_memory.hpp>
#include <roundpipe/simulate/simulated_bubbles.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "options.hpp"
#include "problem.hpp"

namespace plan_pipeline {

/// A schedule's plan, and what the simulation says of it.
struct Outcome {
  std::string schedule;  ///< The option's name.
  bool binds = false;    ///< Whether stages are bound to devices, which keep their weights.
  roundpipe::Partition partition;
  roundpipe::ScheduleShape shape;
  double t_max_s = 0;      ///< The slowest stage, for one micro-batch.
  double objective_s = 0;  ///< (M S + N (N - 1)) t_max
  double planning_s = 0;   ///< Of the partition, inside the process.
  roundpipe::SimulatedBubbles bubbles;
  std::vector<std::size_t> peak_in_flight_forwards;  ///< By stage that runs forward.
  std::size_t boundary_transfers = 0;                ///< From device to device, of an iteration.
  std::vector<roundpipe::DeviceUse> device_bytes;    ///< The most at once, by device.
  roundpipe::Timeline timeline;
  std::vector<std::string> warnings;
};

/// Plans \p problem for the schedule \p name and simulates it.
/// \throws roundpipe::Error in one line: (invalid_argument, unsupported) when the schedule does not
/// apply to the problem, (over_budget) when no plan fits the devices' memory.
[[nodiscard]] Outcome plan_schedule(std::string const& name,
                                    Problem const& problem,
                                    Options const& options);

/// Micro-batches of a round where they are not given: the least divisor of M that is N or more,
/// else M.
[[nodiscard]] std::size_t automatic_round(Options const& options);

}  // namespace plan_pipeline
