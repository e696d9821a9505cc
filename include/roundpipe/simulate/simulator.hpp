// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Says when the actions of a sequence of graphs would run, by discrete events.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/simulate/action_times.hpp>
#include <roundpipe/simulate/link_model.hpp>

#include <vector>

namespace roundpipe {

/// The machine and the habits of the runtime that a simulation imitates.
struct SimulationOptions {
  ComputeCosts compute;
  LinkModel link;
  /// What a boundary, or its gradient, takes from one device to *another*, besides its copies; it
  /// keeps no lane busy. For machines of which no more is known.
  double hand_over_s = 0;
  /// What a device's issuing thread takes for one action.
  double dispatch_s = 0;
  /// Whether a graph is issued only when the losses of all calls before it are there, as by a
  /// caller who waits for them; else everything is issued at the start.
  bool waits_for_losses = false;
};

/// What a simulation says.
struct Simulation {
  std::vector<UnrolledAction> actions;
  /// One entry an action, in the same order; `graph` is the number of its graph in the sequence.
  Timeline timeline;
};

/// When the actions of \p sequence, whose graphs must outlive the result, would run. It depends on
/// nothing else.
/// \throws Error (invalid_argument) for options out of their domain, costs that lack a layer, and
/// sequences of which some actions wait for ever.
[[nodiscard]] Simulation simulate(GraphSequence const& sequence, SimulationOptions const& options);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/simulator.ipp>
#endif
