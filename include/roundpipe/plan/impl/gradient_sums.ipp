// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/plan/call_context.hpp>
#include <roundpipe/plan/gradient_sums.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE Buffer GradientSums::land(BlockUseId use, std::size_t chunks, Action& action) {
  auto& landing = this->landing(use, action.round);
  if (!landing.buffer) {
    auto const ring = rings_.index(use, action.round);
    if (waiting_[ring]) {
      throw broken_rule("Schedule::tasks",
                        4,
                        "stage " + std::to_string(action.stage.value()) +
                            " lands a gradient of round " + std::to_string(action.round.value()) +
                            " where one still waits to be summed",
                        Errc::unsupported);
    }
    waiting_[ring] = true;
    landing.buffer = call_.graph.acquire({BufferKind::landing, DeviceId::none(), ring}, 1, action);
    landing.chunks = chunks;
  }
  return *landing.buffer;
}

ROUNDPIPE_INLINE void GradientSums::landed(BlockUseId use, RoundId round, ActionId chunk) {
  auto& landing = this->landing(use, round);
  landing.landed = chunk;
  --landing.chunks;
  if (!reduced_.empty()) {
    add_reductions();
  } else if (call_.has_fixed_parameters() && call_.input.shape.devices > 1) {
    add_round(round, chunk);
  } else {
    add_accumulations(call_.input.blocks.use(use).block, round);
  }
}

ROUNDPIPE_INLINE void GradientSums::add_round(RoundId round, ActionId last) {
  auto const& blocks = call_.input.blocks;
  std::vector<BlockUseId> uses;
  for (auto u = blocks.uses.size(); u-- > 0;) {  // as the backward goes
    if (BlockUseId const use(u); blocks.block_of(use).sums_gradient) {
      uses.push_back(use);
    }
  }
  if (!std::all_of(uses.begin(), uses.end(), [&](BlockUseId use) {
        return landing(use, round).is_complete();
      })) {
    return;
  }
  for (auto const use : uses) {
    landing(use, round).landed = last;
  }
  for (auto const use : uses) {
    auto const block = blocks.use(use).block;
    if (use == blocks.blocks[block.index()].uses.front()) {  // the last one to land
      add_accumulations(block, round);
    }
  }
}

ROUNDPIPE_INLINE void GradientSums::add_accumulations(BlockId block, RoundId round) {
  auto const& uses = call_.input.blocks.blocks[block.index()].uses;
  auto& next = accumulated_[round.index() * call_.input.blocks.blocks.size() + block.index()];
  for (; next < uses.size() && landing(uses[next], round).is_complete(); ++next) {
    auto const first = next == 0 && round.index() == 0;
    add_accumulation(uses[next], round, first, landing(uses[next], round));
  }
}

ROUNDPIPE_INLINE void GradientSums::add_accumulation(BlockUseId use,
                                                     RoundId round,
                                                     bool first,
                                                     Landing const& landing) {
  auto const& blocks = call_.input.blocks;
  auto action = make_sum(blocks.use(use).block, round);
  action.kind = ActionKind::accumulate_gradient;
  action.lane = {LaneKind::accumulate, DeviceId::none()};
  action.use = use;
  action.layer = blocks.use(use).layer;
  action.first = first;
  action.bytes += blocks.block_of(use).master.bytes();
  action.reads.push_back(landing.buffer.value());
  wait_for(action, landing.landed);
  add_sum(std::move(action));
}

ROUNDPIPE_INLINE std::vector<BlockId> GradientSums::blocks_as_completed() const {
  auto const& blocks = call_.input.blocks;
  std::vector<BlockId> order;
  for (auto u = blocks.uses.size(); u-- > 0;) {
    BlockUseId const use(u);
    auto const& block = blocks.block_of(use);
    if (block.sums_gradient && block.uses.front() == use) {
      order.push_back(blocks.use(use).block);
    }
  }
  return order;
}

ROUNDPIPE_INLINE void GradientSums::add_reductions() {
  for (; reductions_ < reduced_.size() * call_.input.deal.most(); ++reductions_) {
    RoundId const round(reductions_ / reduced_.size());
    auto const block = reduced_[reductions_ % reduced_.size()];
    auto const& uses = call_.input.blocks.blocks[block.index()].uses;
    if (is_own(round) && !std::all_of(uses.begin(), uses.end(), [&](BlockUseId use) {
          return landing(use, round).is_complete();
        })) {
      return;
    }
    add_reduction(block, round);
  }
}

ROUNDPIPE_INLINE void GradientSums::add_reduction(BlockId block, RoundId round) {
  auto const& summed = call_.input.blocks.blocks[block.index()];
  auto action = make_sum(block, round);
  action.kind = ActionKind::reduce_gradient;
  action.lane = {LaneKind::reduce, DeviceId::none()};
  action.layer = call_.input.blocks.use(summed.uses.front()).layer;
  action.first = round.index() == 0;
  auto const of_rank = summed.uses.size() * summed.own().bytes(summed.master).size();
  auto const ranks = call_.input.deal.ranks_with(round.index());
  action.bytes += ranks * of_rank;
  action.received = (is_own(round) ? ranks - 1 : ranks) * of_rank;
  if (is_own(round)) {
    for (auto const use : summed.uses) {
      action.reads.push_back(landing(use, round).buffer.value());
      wait_for(action, landing(use, round).landed);
    }
  }
  add_sum(std::move(action));
}

ROUNDPIPE_INLINE Action GradientSums::make_sum(BlockId block, RoundId round) const {
  Action action;
  action.round = round;
  action.block = block;
  auto const& summed = call_.input.blocks.blocks[block.index()];
  action.bytes = 2 * summed.own().bytes(summed.host_gradient()).size();
  action.writes.push_back(block_buffer(BufferKind::gradient, block));
  return action;
}

ROUNDPIPE_INLINE void GradientSums::add_sum(Action action) {
  BlockEvent const event{action.block, BlockEventKind::gradient_write};
  call_.wait_for_rules(action, event);
  for (auto const& landing : action.reads) {
    waiting_[landing.ring.index] = false;
  }
  call_.graph.publish(event, call_.graph.add(std::move(action)));
}

}  // namespace detail

}  // namespace roundpipe
