// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/model/dealt_rounds.hpp>
#include <roundpipe/runtime/actions/gradient_accumulator.hpp>
#include <roundpipe/runtime/actions/gradient_reducer.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE GradientReducer::GradientReducer(AnyProcessGroup group,
                                                  DealtRounds deal,
                                                  ParameterMemory const& memory,
                                                  GradientAccumulator& sums,
                                                  TakeHostMemory const& take)
    : HostLaneWork({LaneKind::reduce}),
      group_(std::move(group)),
      deal_(std::move(deal)),
      memory_(memory),
      sums_(sums),
      received_(take(received_gradient_bytes(memory.blocks(), group_.size()))) {}

ROUNDPIPE_INLINE void GradientReducer::run(RunState const& run, ActionId id) {
  auto const& action = run.program()[id];
  auto const& call = run.call();
  reduce(action.block, action.round, action.first && call.begins_gradients, call.iteration);
}

ROUNDPIPE_INLINE void GradientReducer::interrupt(std::exception_ptr const& error) noexcept {
  try {
    try {
      std::rethrow_exception(error);
    } catch (...) {
      group_.abort(current_error("").message());
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the reason; the process ends
  }
}

ROUNDPIPE_INLINE void GradientReducer::reduce(BlockId block,
                                              RoundId round,
                                              bool begins,
                                              std::uint64_t iteration) {
  auto const& described = memory_.blocks().blocks[block.index()];
  auto const ranks = group_.size();
  auto const own = group_.rank();
  auto const own_bytes = described.own().bytes(described.master).size();
  auto const has_round = [&](std::size_t r) { return deal_.has(r, round.index()); };
  auto const others_of = [&](std::size_t r) { return r < own ? r : r - 1; };
  auto const sent = [&](std::size_t u, std::size_t r) {  // by rank r
    if (r == own) {
      auto const [begin, end] = described.own().bytes(described.master);
      return memory_.landing(described.uses[u], round, iteration).subspan(begin, end - begin);
    }
    auto const place = u * (ranks - 1) + others_of(r);
    return received_.subspan(place * own_bytes, own_bytes);
  };
  for (std::size_t u = 0; u < described.uses.size(); ++u) {
    std::vector<ConstHostBytes> mine(ranks);
    std::vector<HostBytes> theirs(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      if (r != own && has_round(own)) {
        auto const [begin, end] = described.shard(r).bytes(described.master);
        mine[r] = memory_.landing(described.uses[u], round, iteration).subspan(begin, end - begin);
      }
      if (r != own && has_round(r)) {
        theirs[r] = sent(u, r);
      }
    }
    group_.exchange(GroupChannel::gradients, mine, theirs);
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t u = 0; has_round(r) && u < described.uses.size(); ++u) {
      sums_.add(block, sent(u, r), begins && r == 0 && u == 0, iteration);
    }
  }
}

}  // namespace roundpipe
