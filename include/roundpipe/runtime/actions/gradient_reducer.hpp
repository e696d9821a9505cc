// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The host lane that adds gradients of all ranks.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/model/dealt_rounds.hpp>
#include <roundpipe/runtime/actions/gradient_accumulator.hpp>
#include <roundpipe/runtime/execute/host_lane_work.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>

#include <cstdint>
#include <exception>

namespace roundpipe {

/// Exchanges what has landed for a block on every rank, and adds it to the block's sum: rank after
/// rank, and in each a block's uses in layer order, as one process with the rounds of all ranks
/// would. Each rank gets and sums its own shard of the block, which may be all.
class GradientReducer final : public HostLaneWork {
 public:
  /// \p memory and \p sums, which nobody else uses meanwhile, must outlive this. Takes room for
  /// the gradients of all ranks with \p take, which owns it. \p deal: the rounds of the ranks.
  GradientReducer(AnyProcessGroup group,
                  DealtRounds deal,
                  ParameterMemory const& memory,
                  GradientAccumulator& sums,
                  TakeHostMemory const& take);

  /// \throws Error as the group does.
  void run(RunState const& run, ActionId id) override;

  /// Ends the group, which tells the other ranks the error.
  void interrupt(std::exception_ptr const& error) noexcept override;

  /// Adds what has landed for \p block in \p round on all ranks that have such a round, or begins
  /// the sum with it.
  void reduce(BlockId block, RoundId round, bool begins, std::uint64_t iteration);

 private:
  AnyProcessGroup group_;
  DealtRounds deal_;
  ParameterMemory const& memory_;
  GradientAccumulator& sums_;
  HostBytes received_;  // by use, by other rank
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/actions/impl/gradient_reducer.ipp>
#endif
