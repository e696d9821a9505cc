// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Builds the graph of one call of any schedule, on devices that keep their weights.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace roundpipe {

/// What a graph of tasks is built from. The references must live until the graph is built.
struct ResidentGraphInput {
  ParameterBlocks const& blocks;
  Partition const& partition;             ///< As the shape's `fused` says; stages may be empty.
  std::span<Bytes const> boundary_bytes;  ///< By layer: of what it hands to the next one.
  ScheduleShape shape;
  DeviceTasks const& tasks;
  std::size_t advance = 0;
  /// Whether recomputation begins only when the gradient is there.
  bool recompute_waits_for_gradient = false;
  /// What an event waits for (`EventProtocol::before`).
  std::function<std::vector<BlockEvent>(BlockEvent)> before;
};

/// Builds the graph of a call whose tasks run on devices that keep the weights of their stages:
/// boundaries go through the host where the next task runs on another device, nothing else is
/// copied. Compute reads the weights, as uploads do elsewhere, and makes the gradients that the
/// step waits for; it has its own place for them, and so waits for no earlier step's reading. For
/// schedules that bind stages to devices, to be verified, simulated and drawn; what
/// \ref Pipeline runs is made by \ref build_streamed_graph.
/// \throws Error (invalid_argument) when shape and partition do not belong together, or where the
///         tasks break rule 1 or 3 of \ref Schedule.
[[nodiscard]] ActionGraph build_resident_graph(ResidentGraphInput const& input);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/resident_graph.ipp>
#endif
