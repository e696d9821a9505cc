// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The part of a call's graph that sums gradients on the host: their landings, and what adds
/// these up.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/plan/call_context.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

namespace roundpipe::detail {

/// Adds accumulations as soon as what they add up has landed: round by round, and in each a block's
/// uses in layer order.
class GradientSums {
 public:
  /// \p call must outlive this.
  explicit GradientSums(CallContext& call) : call_(call) {}

  /// Where the gradient of \p use lands in the round of \p action, in \p chunks chunks; \p action,
  /// the first of them, waits until the place is free.
  /// \throws Error (unsupported) when the round before has not been summed.
  [[nodiscard]] Buffer land(BlockUseId use, std::size_t chunks, Action& action) {
    auto& landing = landings_[{use, action.round}];
    if (!landing.buffer) {
      require(waiting_[use] == 0,
              Errc::unsupported,
              "the schedule lands a gradient before the round before is summed");
      ++waiting_[use];
      landing.buffer =
          call_.graph.acquire({BufferKind::landing, DeviceId::none(), use.index()}, 1, action);
      landing.chunks = chunks;
    }
    return *landing.buffer;
  }

  /// Says that \p chunk brings a part of \p use's gradient, and adds the accumulations that this
  /// makes due.
  void landed(BlockUseId use, RoundId round, ActionId chunk) {
    auto& landing = landings_.at({use, round});
    landing.landed = chunk;
    --landing.chunks;
    add_accumulations(call_.input.blocks.use(use).block, round);
  }

 private:
  struct Landing {
    std::optional<Buffer> buffer;
    std::size_t chunks = 0;  // still to be downloaded
    ActionId landed;         // the latest of them
  };

  void add_accumulations(BlockId block, RoundId round) {
    auto const& uses = call_.input.blocks.blocks[block.index()].uses;
    auto& next = accumulated_[{block.index(), round.index()}];
    for (; next < uses.size(); ++next) {
      auto const found = landings_.find({uses[next], round});
      if (found == landings_.end() || found->second.chunks > 0) {
        return;
      }
      add_accumulation(uses[next], round, next == 0 && round.index() == 0, found->second);
    }
  }

  void add_accumulation(BlockUseId use, RoundId round, bool first, Landing const& landing) {
    auto const& blocks = call_.input.blocks;
    auto const block = blocks.use(use).block;
    Action action;
    action.kind = ActionKind::accumulate_gradient;
    action.lane = {LaneKind::accumulate, DeviceId::none()};
    action.round = round;
    action.block = block;
    action.use = use;
    action.layer = blocks.use(use).layer;
    action.first = first;
    action.bytes = blocks.blocks[block.index()].master.bytes();
    action.reads.push_back(landing.buffer.value());
    action.writes.push_back(block_buffer(BufferKind::gradient, block));
    wait_for(action, landing.landed);
    call_.wait_for_rules(action, {block, BlockEventKind::gradient_write});
    auto const added = call_.graph.add(std::move(action));
    call_.graph.publish({block, BlockEventKind::gradient_write}, added);
    --waiting_[use];
  }

  CallContext& call_;
  std::map<std::pair<BlockUseId, RoundId>, Landing> landings_;              // by use, round
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> accumulated_;  // by block, round
  std::map<BlockUseId, std::size_t> waiting_;  // by use: landings that are not summed
};

}  // namespace roundpipe::detail
