// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What stages hold at once, and what devices hand to each other, in a simulation.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// The layers of the stages that run forward for the first time, in execution order: the forward
/// stages of \p partition, and the fused stage if there is one.
[[nodiscard]] std::vector<LayerRange> forward_ranges(Partition const& partition);

/// For each stage of \ref forward_ranges: the largest number of micro-batches in flight at once. A
/// micro-batch is in flight from the begin of its forward to the end of its backward, both halves.
/// Stages without layers hold none.
[[nodiscard]] std::vector<std::size_t> peak_in_flight_forwards(Simulation const& simulation,
                                                               Partition const& partition);

/// The number of boundaries and boundary gradients that the graph with number \p graph hands from
/// one device to another.
[[nodiscard]] std::size_t count_hand_overs(Simulation const& simulation, std::size_t graph = 0);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/stage_activity.ipp>
#endif
