// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What does the actions of one host lane.

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/execute/host_lane_traits.hpp>

#include <concepts>

namespace roundpipe {

/// \brief The work of one host lane.
///
/// Semantics:
/// 1. `H::lane` says which lane it is, and how an executor treats it.
/// 2. `run(action, call)` does an action of that lane before it returns, and throws when that
///    fails. The lane's thread calls it, in the order of the graphs.
///
/// Opt-in: `abandon(graph, id, call)` is called once on the lane's thread when an error stops the
/// lane before action \c id of \c graph; reason: work that is half done may be better finished.
///
/// To add work (say: a reduction of gradients over several hosts), write a model of this, let the
/// step's graph give its actions to its lane, and hand it to the \ref ActionDispatcher.
template <class H>
concept HostLaneWork = requires(H& work, Action const& action, CallData const& call) {
  { H::lane } -> std::convertible_to<HostLaneTraits>;
  work.run(action, call);
};

}  // namespace roundpipe
