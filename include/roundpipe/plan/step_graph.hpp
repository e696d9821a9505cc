// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Builds the graph of an optimizer step, and of the flush that ends a staleness.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/plan/graph_builder.hpp>
#include <roundpipe/plan/parameter_blocks.hpp>

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace roundpipe {

/// What a step does.
struct StepOptions {
  bool clips = false;  ///< The norm of all gradients is known before any block is updated.
};

namespace detail {

/// Emits a step's host actions so that whatever the protocol makes one wait for comes first.
template <EventProtocol P>
class StepGraphBuilder {
 public:
  StepGraphBuilder(ParameterBlocks const& blocks, P const& protocol, StepOptions options)
      : blocks_(blocks), protocol_(protocol), options_(options), graph_(0) {
    // The order of a block's actions within one step. With staleness 1 the P copy is the one of the
    // step before.
    if (protocol.staleness() == 1) {
      ranks_ = {BlockEventKind::parameter_copy,
                BlockEventKind::gradient_copy,
                BlockEventKind::optimizer_step};
    } else {
      ranks_ = {BlockEventKind::gradient_copy,
                BlockEventKind::optimizer_step,
                BlockEventKind::parameter_copy};
    }
  }

  [[nodiscard]] ActionGraph build_step() && {
    auto const count = blocks_.blocks.size();
    if (protocol_.staleness() == 1) {
      // First of all, so that the next iteration's uploads do not wait for this step. Backward
      // stages upload the last layers first.
      for (std::size_t b = count; b-- > 0;) {
        add_event({BlockId(b), BlockEventKind::parameter_copy});
      }
    }
    for (std::size_t b = count; b-- > 0;) {  // as gradients land
      add_event({BlockId(b), BlockEventKind::gradient_copy});
    }
    for (std::size_t b = 0; options_.clips && b < count; ++b) {
      add_norm(BlockId(b));
    }
    for (std::size_t b = 0; b < count; ++b) {  // as the next iteration needs them
      add_event({BlockId(b), BlockEventKind::optimizer_step});
      add_event({BlockId(b), BlockEventKind::parameter_copy});
    }
    return std::move(graph_).finish(0);
  }

  /// P copies of all blocks, with nothing else.
  [[nodiscard]] ActionGraph build_flush() && {
    ranks_ = {BlockEventKind::parameter_copy,
              BlockEventKind::gradient_copy,
              BlockEventKind::optimizer_step};
    for (std::size_t b = 0; b < blocks_.blocks.size(); ++b) {
      add_event({BlockId(b), BlockEventKind::parameter_copy});
    }
    return std::move(graph_).finish(0);
  }

 private:
  [[nodiscard]] std::optional<std::size_t> rank(BlockEventKind kind) const {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r] == kind && (kind != BlockEventKind::gradient_copy || copies_gradients())) {
        return r;
      }
    }
    return std::nullopt;
  }
  [[nodiscard]] bool copies_gradients() const { return protocol_.copies_gradients(); }

  [[nodiscard]] Action make(ActionKind kind, BlockId block) const {
    Action action;
    action.kind = kind;
    action.lane = {LaneKind::optimizer, DeviceId::none()};
    action.block = block;
    action.bytes = blocks_.blocks[block.index()].gradient.bytes();
    return action;
  }

  [[nodiscard]] Buffer buffer(BufferKind kind, BlockId block) const {
    return {{kind, DeviceId::none(), block.index()}, 0};
  }
  [[nodiscard]] Buffer gradient_of(BlockId block) const {
    return buffer(copies_gradients() ? BufferKind::gradient_copy : BufferKind::gradient, block);
  }

  /// Makes \p action wait for \p event: an action of this graph when it ranks before \p own, else
  /// whatever earlier graphs did.
  void wait_for(Action& action, BlockEvent event, std::size_t own) {
    auto const r = rank(event.kind);
    if (r && *r < own) {
      action.waits.push_back(add_event(event));
    } else {
      action.block_waits.push_back(event);
    }
  }

  ActionId add_event(BlockEvent event) {
    auto const r = rank(event.kind);
    if (!r) {
      return ActionId::none();
    }
    auto const [found, is_new] = events_.try_emplace(event, ActionId::none());
    if (!is_new) {
      require(found->second.valid(),
              Errc::invalid_argument,
              "an event protocol makes actions of one step wait for each other");
      return found->second;
    }
    auto action = make(kind_of(event.kind), event.block);
    for (auto const& before : protocol_.before(event, blocks_.blocks.size())) {
      wait_for(action, before, *r);
    }
    switch (event.kind) {
      case BlockEventKind::gradient_copy:
        action.reads.push_back(buffer(BufferKind::gradient, event.block));
        action.writes.push_back(buffer(BufferKind::gradient_copy, event.block));
        break;
      case BlockEventKind::optimizer_step:
        action.reads.push_back(gradient_of(event.block));
        action.writes.push_back(buffer(BufferKind::optimizer_copy, event.block));
        for (auto const norm : norms_) {
          action.waits.push_back(norm);
        }
        wait_for_all_gradients(action);
        break;
      default:
        action.reads.push_back(buffer(BufferKind::optimizer_copy, event.block));
        action.writes.push_back(buffer(BufferKind::master, event.block));
    }
    auto const id = graph_.add(std::move(action));
    graph_.publish(event, id);
    events_[event] = id;
    return id;
  }

  /// A step is all or nothing: no block is updated before every gradient of the iteration is there,
  /// so that an error in the iteration leaves all weights as they were.
  void wait_for_all_gradients(Action& action) const {
    for (std::size_t b = 0; !copies_gradients() && b < blocks_.blocks.size(); ++b) {
      action.block_waits.push_back({BlockId(b), BlockEventKind::gradient_write});
    }
  }

  void add_norm(BlockId block) {
    auto action = make(ActionKind::gradient_norm, block);
    if (copies_gradients()) {
      action.waits.push_back(add_event({block, BlockEventKind::gradient_copy}));
    } else {
      BlockEvent const step{block, BlockEventKind::optimizer_step};
      for (auto const& before : protocol_.before(step, blocks_.blocks.size())) {
        if (before.kind == BlockEventKind::gradient_write) {
          action.block_waits.push_back(before);  // it reads what the update will read
        }
      }
    }
    action.reads.push_back(gradient_of(block));
    norms_.push_back(graph_.add(std::move(action)));
  }

  [[nodiscard]] static ActionKind kind_of(BlockEventKind kind) {
    switch (kind) {
      case BlockEventKind::gradient_copy:
        return ActionKind::copy_gradient;
      case BlockEventKind::optimizer_step:
        return ActionKind::optimizer_step;
      default:
        return ActionKind::copy_parameters;
    }
  }

  ParameterBlocks const& blocks_;
  P const& protocol_;
  StepOptions options_;
  GraphBuilder graph_;
  std::array<BlockEventKind, 3> ranks_;
  std::map<BlockEvent, ActionId> events_;
  std::vector<ActionId> norms_;
};

}  // namespace detail

/// The graph of one optimizer step: G copies of all blocks (when the protocol copies gradients), in
/// the order in which gradients land; then for each block, in the order in which the next iteration
/// needs them, update and P copy. With staleness 1 the P copies are those of the step before and
/// come first. No block is updated before all gradients of the iteration have landed.
/// \throws Error (invalid_argument) when the protocol's rules form a cycle.
template <EventProtocol P>
[[nodiscard]] ActionGraph build_step_graph(ParameterBlocks const& blocks,
                                           P const& protocol,
                                           StepOptions options) {
  return detail::StepGraphBuilder<P>(blocks, protocol, options).build_step();
}

/// The graph that brings every master copy up to the finished steps.
template <EventProtocol P>
[[nodiscard]] ActionGraph build_flush_graph(ParameterBlocks const& blocks, P const& protocol) {
  return detail::StepGraphBuilder<P>(blocks, protocol, {}).build_flush();
}

}  // namespace roundpipe
