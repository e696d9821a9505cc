// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Builds the graph of an optimizer step, and of the flush that ends a staleness.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/protocol_check.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <cstddef>
#include <functional>
#include <vector>

namespace roundpipe {

/// What a step does.
struct StepOptions {
  /// Whether the sums of squares of all gradients are known before any block is updated: for
  /// clipping by global norm, and to skip steps whose gradients have overflowed.
  bool measures_gradients = false;
  /// Whether no block is updated, and no P copy is made, before the gradients of all blocks have
  /// landed (and are measured), so that a step that begins can be finished.
  bool waits_for_all = false;
  /// Whether the update reads the master copy of the step before, for it has no weights of its own.
  bool reads_master = false;
  std::size_t state_arrays = 0;  ///< Of the optimizer: what an update reads and writes besides.
};

namespace detail {

/// What a step's graph takes of a protocol.
struct StepRules {
  bool copies_parameters = false;  ///< Whether P copies are actions of their own.
  bool is_synchronous = false;     ///< Whether the next iteration waits for the step.
  /// What an event waits for (`EventProtocol::before`).
  std::function<std::vector<BlockEvent>(BlockEvent)> before;
};

template <EventProtocol P>
[[nodiscard]] StepRules step_rules(ParameterBlocks const& blocks, P const& protocol) {
  return {copies_parameters(protocol), protocol.staleness() == 0, [&](BlockEvent event) {
            return events_before(protocol, event, blocks.blocks.size());
          }};
}

[[nodiscard]] ActionGraph build_step_actions(ParameterBlocks const& blocks,
                                             StepRules const& rules,
                                             StepOptions options);
[[nodiscard]] ActionGraph build_flush_actions(ParameterBlocks const& blocks,
                                              StepRules const& rules);

}  // namespace detail

/// The graph of one optimizer step: norms, if wanted; P copies of all blocks, where they are
/// actions of their own (and then those of the step before); and updates, in the order in which
/// gradients land. In synchronous mode with norms, when all gradients are there, updates come in
/// the order in which the next iteration needs the weights. Where ranks share blocks, what writes a
/// rank's share of a master copy is followed by a gather of the others'. Frozen blocks have no part
/// in it.
template <EventProtocol P>
[[nodiscard]] ActionGraph build_step_graph(ParameterBlocks const& blocks,
                                           P const& protocol,
                                           StepOptions options) {
  auto graph = detail::build_step_actions(blocks, detail::step_rules(blocks, protocol), options);
  set_role(graph, GraphRole::step, protocol);
  return graph;
}

/// The graph that brings every master copy up to the finished steps; empty where the optimizer
/// steps write master copies themselves.
template <EventProtocol P>
[[nodiscard]] ActionGraph build_flush_graph(ParameterBlocks const& blocks, P const& protocol) {
  auto graph = detail::build_flush_actions(blocks, detail::step_rules(blocks, protocol));
  set_role(graph, GraphRole::flush, protocol);
  return graph;
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/step_graph.ipp>
#endif
