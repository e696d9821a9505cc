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
  if (call_.has_fixed_parameters() && call_.input.shape.devices > 1) {
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
  auto const block = blocks.use(use).block;
  Action action;
  action.kind = ActionKind::accumulate_gradient;
  action.lane = {LaneKind::accumulate, DeviceId::none()};
  action.round = round;
  action.block = block;
  action.use = use;
  action.layer = blocks.use(use).layer;
  action.first = first;
  auto const& summed = blocks.blocks[block.index()];
  action.bytes = summed.master.bytes() + 2 * summed.host_gradient().bytes();
  action.reads.push_back(landing.buffer.value());
  action.writes.push_back(block_buffer(BufferKind::gradient, block));
  wait_for(action, landing.landed);
  call_.wait_for_rules(action, {block, BlockEventKind::gradient_write});
  auto const added = call_.graph.add(std::move(action));
  call_.graph.publish({block, BlockEventKind::gradient_write}, added);
  waiting_[landing.buffer->ring.index] = false;
}

}  // namespace detail

}  // namespace roundpipe
