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

/// A schedule's plan and the results of its simulation.
struct Outcome {
  std::string schedule;  ///< Its name in the option.
  bool binds = false;    ///< Whether devices own stages and keep their weights.
  roundpipe::Partition partition;
  roundpipe::ScheduleShape shape;
  double t_max_s = 0;      ///< Of the slowest stage, for one micro-batch.
  double objective_s = 0;  ///< (M S + N (N - 1)) t_max
  double planning_s = 0;   ///< To find the partition, measured inside the process.
  roundpipe::SimulatedBubbles bubbles;
  std::vector<std::size_t> peak_in_flight_forwards;  ///< For each stage that runs forward.
  std::size_t boundary_transfers = 0;                ///< From device to device, in an iteration.
  std::vector<roundpipe::DeviceUse> device_bytes;    ///< The most at once, for each device.
  roundpipe::Timeline timeline;
  std::vector<std::string> warnings;
};

/// Plans \p problem for the schedule \p name and simulates it.
/// \throws roundpipe::Error in one line: (invalid_argument, unsupported) if the schedule does not
/// apply to the problem, (over_budget) if no plan fits the devices' memory.
[[nodiscard]] Outcome plan_schedule(std::string const& name,
                                    Problem const& problem,
                                    Options const& options);

/// The default number of micro-batches in a round: the least divisor of M that is N or more, or
/// else M.
[[nodiscard]] std::size_t automatic_round(Options const& options);

}  // namespace plan_pipeline
