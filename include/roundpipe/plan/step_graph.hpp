// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Builds the graph of an optimizer step, and of the flush that ends a staleness.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/graph/graph_builder.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace roundpipe {

/// What a step does.
struct StepOptions {
  /// Whether the sums of squares of all gradients are known before any block is updated: for
  /// clipping by global norm, and to skip steps whose gradients have overflowed.
  bool measures_gradients = false;
  /// Whether no block is updated before the gradients of all blocks have landed.
  bool waits_for_all = false;
  /// Whether the update reads the master copy of the step before, for it has no weights of its own.
  bool reads_master = false;
};

namespace detail {

template <EventProtocol P>
class StepGraphBuilder {
 public:
  StepGraphBuilder(ParameterBlocks const& blocks, P const& protocol, StepOptions options)
      : blocks_(blocks), protocol_(protocol), options_(options), graph_(0) {
    for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
      if (!blocks.blocks[b].frozen) {
        trained_.push_back(BlockId(b));
      }
    }
  }

  [[nodiscard]] ActionGraph build_step() && {
    std::vector<BlockId> const last_first(trained_.rbegin(), trained_.rend());
    if (copies_parameters(protocol_)) {  // backward stages upload the last layers first
      for (auto const block : last_first) {
        add_copy(block);
      }
    }
    if (options_.measures_gradients) {
      for (auto const block : last_first) {
        add_norm(block);
      }
    }
    // As gradients land; when they are all there, as the next iteration needs the weights.
    auto const first_first = options_.measures_gradients && protocol_.staleness() == 0;
    for (auto const block : first_first ? trained_ : last_first) {
      add_update(block);
    }
    return finish(GraphRole::step);
  }

  [[nodiscard]] ActionGraph build_flush() && {
    for (auto const block : trained_) {
      if (copies_parameters(protocol_)) {
        add_copy(block);
      }
    }
    return finish(GraphRole::flush);
  }

 private:
  [[nodiscard]] Action make(ActionKind kind, LaneKind lane, BlockId block) const {
    Action action;
    action.kind = kind;
    action.lane = {lane, DeviceId::none()};
    action.block = block;
    action.bytes = blocks_.blocks[block.index()].gradient.bytes();
    return action;
  }

  /// Makes \p action wait for \p event: for what this graph does, else for what earlier ones did.
  void wait_for(Action& action, BlockEvent event) const {
    auto const found = event.age == 0 ? events_.find(event) : events_.end();
    if (found != events_.end()) {
      action.waits.push_back(found->second);
    } else {
      action.block_waits.push_back(event);
    }
  }
  void wait_for_rules(Action& action, BlockEventKind kind) const {
    for (auto const& event : protocol_.before({action.block, kind, 0}, blocks_.blocks.size())) {
      wait_for(action, event);
    }
  }

  void add(Action action, std::vector<BlockEventKind> const& kinds) {
    auto const block = action.block;
    auto const id = graph_.add(std::move(action));
    for (auto const kind : kinds) {
      graph_.publish({block, kind, 0}, id);
      events_[{block, kind, 0}] = id;
    }
  }

  void add_copy(BlockId block) {
    auto action = make(ActionKind::copy_parameters, LaneKind::parameter_copy, block);
    wait_for_rules(action, BlockEventKind::parameter_copy);
    action.reads.push_back(block_buffer(BufferKind::optimizer_copy, block));
    action.writes.push_back(block_buffer(BufferKind::master, block));
    add(std::move(action), {BlockEventKind::parameter_copy});
  }

  /// The norm reads what the update will read, after the same gradients.
  void add_norm(BlockId block) {
    auto action = make(ActionKind::gradient_norm, LaneKind::optimizer, block);
    for (auto const& event :
         protocol_.before({block, BlockEventKind::optimizer_step, 0}, blocks_.blocks.size())) {
      if (event.kind == BlockEventKind::gradient_write) {
        wait_for(action, event);
      }
    }
    action.reads.push_back(block_buffer(BufferKind::gradient, block));
    action.writes.push_back(block_buffer(BufferKind::norm, block));
    add(std::move(action), {});
  }

  void add_update(BlockId block) {
    auto action = make(ActionKind::optimizer_step, LaneKind::optimizer, block);
    wait_for_rules(action, BlockEventKind::optimizer_step);
    action.reads.push_back(block_buffer(BufferKind::gradient, block));
    for (auto const other : trained_) {
      if (options_.measures_gradients) {  // before it on its lane
        action.reads.push_back(block_buffer(BufferKind::norm, other));
      }
      if (options_.waits_for_all) {
        action.block_waits.push_back({other, BlockEventKind::gradient_write, 0});
      }
    }
    action.writes.push_back(block_buffer(BufferKind::optimizer_copy, block));
    if (options_.reads_master) {
      action.reads.push_back(block_buffer(BufferKind::master, block));
    }
    if (copies_parameters(protocol_)) {
      add(std::move(action), {BlockEventKind::optimizer_step});
    } else {
      action.writes.push_back(block_buffer(BufferKind::master, block));
      add(std::move(action), {BlockEventKind::optimizer_step, BlockEventKind::parameter_copy});
    }
  }

  [[nodiscard]] ActionGraph finish(GraphRole role) {
    auto graph = std::move(graph_).finish(0);
    set_role(graph, role, protocol_);
    return graph;
  }

  ParameterBlocks const& blocks_;
  P const& protocol_;
  StepOptions options_;
  GraphBuilder graph_;
  std::vector<BlockId> trained_;
  std::map<BlockEvent, ActionId> events_;
};

}  // namespace detail

/// The graph of one optimizer step: P copies of all blocks, where they are actions of their own
/// (and then those of the step before); norms, if wanted; and updates, in the order in which
/// gradients land. In synchronous mode with norms, when all gradients are there, updates come in
/// the order in which the next iteration needs the weights. Frozen blocks have no part in it.
template <EventProtocol P>
[[nodiscard]] ActionGraph build_step_graph(ParameterBlocks const& blocks,
                                           P const& protocol,
                                           StepOptions options) {
  return detail::StepGraphBuilder<P>(blocks, protocol, options).build_step();
}

/// The graph that brings every master copy up to the finished steps; empty where the optimizer
/// steps write master copies themselves.
template <EventProtocol P>
[[nodiscard]] ActionGraph build_flush_graph(ParameterBlocks const& blocks, P const& protocol) {
  return detail::StepGraphBuilder<P>(blocks, protocol, {}).build_flush();
}

}  // namespace roundpipe
