// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/graph_builder.hpp>
#include <roundpipe/model/block_shards.hpp>
#include <roundpipe/plan/step_graph.hpp>

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

class StepGraphBuilder {
 public:
  StepGraphBuilder(ParameterBlocks const& blocks, StepRules const& rules, StepOptions options)
      : blocks_(blocks), rules_(rules), options_(options), graph_(0) {
    for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
      if (!blocks.blocks[b].frozen) {
        trained_.push_back(BlockId(b));
      }
    }
  }

  [[nodiscard]] ActionGraph build_step() && {
    std::vector<BlockId> const last_first(trained_.rbegin(), trained_.rend());
    if (options_.measures_gradients) {
      for (auto const block : last_first) {
        add_norm(block);
      }
    }
    if (rules_.copies_parameters) {  // backward stages upload the last layers first
      for (auto const block : last_first) {
        add_copy(block);
      }
    }
    // As gradients land; when they are all there, as the next iteration needs the weights.
    auto const first_first = options_.measures_gradients && rules_.is_synchronous;
    for (auto const block : first_first ? trained_ : last_first) {
      add_update(block);
    }
    return std::move(graph_).finish(0);
  }

  [[nodiscard]] ActionGraph build_flush() && {
    for (auto const block : trained_) {
      if (rules_.copies_parameters) {
        add_copy(block);
      }
    }
    return std::move(graph_).finish(0);
  }

 private:
  [[nodiscard]] Action make(ActionKind kind, LaneKind lane, BlockId block) const {
    Action action;
    action.kind = kind;
    action.lane = {lane, DeviceId::none()};
    action.block = block;
    action.bytes = bytes_of(kind, blocks_.blocks[block.index()]);
    return action;
  }

  /// What an action reads and writes.
  [[nodiscard]] Bytes bytes_of(ActionKind kind, ParameterBlock const& block) const {
    auto const own = block.own();
    auto const declared = own.bytes(block.master).size();
    auto const wide = own.bytes(block.gradient).size();
    auto const gradient = own.bytes(block.host_gradient()).size();
    switch (kind) {
      case ActionKind::copy_parameters:
        return wide + declared;
      case ActionKind::gradient_norm:
        return gradient;
      case ActionKind::gather_weights:
        return block.master.bytes();
      default: {
        auto const weights = options_.reads_master ? declared : 2 * wide;
        auto const states = 2 * options_.state_arrays * (options_.reads_master ? declared : wide);
        return gradient + weights + states + (rules_.copies_parameters ? 0 : declared);
      }
    }
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
    for (auto const& event : rules_.before({action.block, kind, 0})) {
      wait_for(action, event);
    }
  }

  ActionId add(Action action, std::vector<BlockEventKind> const& kinds) {
    auto const block = action.block;
    auto const id = graph_.add(std::move(action));
    for (auto const kind : kinds) {
      graph_.publish({block, kind, 0}, id);
      events_[{block, kind, 0}] = id;
    }
    return id;
  }

  void add_copy(BlockId block) {
    auto action = make(ActionKind::copy_parameters, LaneKind::parameter_copy, block);
    wait_for_rules(action, BlockEventKind::parameter_copy);
    if (blocks_.blocks[block.index()].is_sharded()) {  // the gather before may still send
      action.block_waits.push_back({block, BlockEventKind::parameter_copy, 0});
    }
    if (options_.waits_for_all) {  // so that a step whose P copies begin can be finished
      for (auto const other : trained_) {
        action.block_waits.push_back({other, BlockEventKind::gradient_write, 0});
        if (other != block) {
          action.block_waits.push_back({other, BlockEventKind::optimizer_step, 0});
        }
      }
      if (last_norm_.valid()) {
        action.waits.push_back(last_norm_);
      }
    }
    action.reads.push_back(block_buffer(BufferKind::optimizer_copy, block));
    action.writes.push_back(block_buffer(BufferKind::master, block));
    add_gather(add(std::move(action), {BlockEventKind::parameter_copy}), block);
  }

  /// Where ranks share \p block: brings the shards of the others, once \p writer has written the
  /// own one to the master copy. Only then the P copy is complete for later graphs.
  void add_gather(ActionId writer, BlockId block) {
    auto const& described = blocks_.blocks[block.index()];
    if (!described.is_sharded()) {
      return;
    }
    auto action = make(ActionKind::gather_weights, LaneKind::gather, block);
    action.received = action.bytes - described.own().bytes(described.master).size();
    action.waits.push_back(writer);
    action.reads.push_back(block_buffer(BufferKind::master, block));
    action.writes.push_back(block_buffer(BufferKind::gathered, block));
    graph_.publish({block, BlockEventKind::parameter_copy, 0}, graph_.add(std::move(action)));
  }

  /// The norm reads what the update will read, after the same gradients.
  void add_norm(BlockId block) {
    auto action = make(ActionKind::gradient_norm, LaneKind::optimizer, block);
    for (auto const& event : rules_.before({block, BlockEventKind::optimizer_step, 0})) {
      if (event.kind == BlockEventKind::gradient_write) {
        wait_for(action, event);
      }
    }
    action.reads.push_back(block_buffer(BufferKind::gradient, block));
    action.writes.push_back(block_buffer(BufferKind::norm, block));
    last_norm_ = add(std::move(action), {});
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
    if (rules_.copies_parameters) {
      add(std::move(action), {BlockEventKind::optimizer_step});
    } else {
      action.writes.push_back(block_buffer(BufferKind::master, block));
      auto const kinds = {BlockEventKind::optimizer_step, BlockEventKind::parameter_copy};
      add_gather(add(std::move(action), kinds), block);
    }
  }

  ParameterBlocks const& blocks_;
  StepRules const& rules_;
  StepOptions options_;
  GraphBuilder graph_;
  std::vector<BlockId> trained_;
  std::map<BlockEvent, ActionId> events_;
  ActionId last_norm_;
};

ROUNDPIPE_INLINE ActionGraph build_step_actions(ParameterBlocks const& blocks,
                                                StepRules const& rules,
                                                StepOptions options) {
  return StepGraphBuilder(blocks, rules, options).build_step();
}

ROUNDPIPE_INLINE ActionGraph build_flush_actions(ParameterBlocks const& blocks,
                                                 StepRules const& rules) {
  return StepGraphBuilder(blocks, rules, {}).build_flush();
}

}  // namespace detail

}  // namespace roundpipe
