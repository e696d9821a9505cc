// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Predicts when the actions of a sequence of graphs would run, by discrete events.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/simulate/action_times.hpp>
#include <roundpipe/simulate/link_model.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// The machine and the runtime behaviour that a simulation imitates.
struct SimulationOptions {
  ComputeCosts compute;
  LinkModel link;
  /// The time of handing a boundary, or its gradient, to *another* device through the host, besides
  /// its copies; occupies no lane. For machines of which no more is known.
  double hand_over_s = 0;
  /// The time that an \ref Issuer takes for one action.
  double dispatch_s = 0;
  /// Whether each graph is issued only when the losses of all earlier calls are there, as by a
  /// caller that waits for losses. Otherwise all graphs are issued at the start.
  bool waits_for_losses = false;
};

/// The result of a simulation.
struct Simulation {
  UnrolledActions actions;
  /// One entry for each action, in the same order; `graph` is the number of the action's graph.
  Timeline timeline;
};

/// The start and end times of the actions of \p sequence, whose graphs must outlive the result. The
/// result depends on the arguments alone.
/// \throws Error (invalid_argument) for invalid options, missing layer costs, and sequences with
/// actions that wait forever.
[[nodiscard]] Simulation simulate(GraphSequence const& sequence, SimulationOptions const& options);

/// The seconds from the end of all compute before graph number \p first of \p sequence to the end
/// of all compute before number \p end, by the same simulation. It stops there and records nothing,
/// so it takes less time.
/// \throws Error (invalid_argument) like \ref simulate, but for actions that wait forever only
/// where compute before \p end waits for them.
[[nodiscard]] double simulate_compute_seconds(GraphSequence const& sequence,
                                              std::size_t first,
                                              std::size_t end,
                                              SimulationOptions const& options);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/simulator.ipp>
#endif
