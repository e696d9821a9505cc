// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The part of a call's graph that sums gradients on the host: their landings, and what adds
/// these up.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/landing_rings.hpp>
#include <roundpipe/plan/call_context.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace roundpipe::detail {

/// Adds accumulations as soon as what they add up has landed: round by round, and in each a block's
/// uses in layer order.
///
/// Where parameters are fixed (\ref CallContext::has_fixed_parameters) on several devices, sums
/// wait until all of a round has landed; reason: meanwhile the next slots' parameters go up,
/// compute waits for them, and all devices share the host's memory with the sums.
///
/// With several ranks, reductions take the place of accumulations: one for each block and round,
/// which adds the gradients of all ranks, rank after rank and in each a block's uses in layer
/// order. All ranks must reduce in one order, whatever their stages and devices: round by round,
/// and in each from the block whose first use stands last in the model to the one where it stands
/// first, as a backward completes them. A rank with fewer rounds than another one adds nothing of
/// its own to the last ones, and waits for nothing there.
class GradientSums {
 public:
  /// \p call must outlive this.
  explicit GradientSums(CallContext& call)
      : call_(call),
        rings_(call.input.blocks,
               call.input.stages,
               call.input.shape.devices,
               call.input.shape.rounds),
        landings_(call.input.shape.rounds * call.input.blocks.uses.size()),
        accumulated_(call.input.shape.rounds * call.input.blocks.blocks.size()),
        waiting_(rings_.entry_bytes().size()),
        reduced_(call.input.deal.ranks() > 1 ? blocks_as_completed() : std::vector<BlockId>()) {}

  /// Where the gradient of \p use lands in the round of \p action, in \p chunks chunks; \p action,
  /// the first of them, waits until the place is free.
  /// \throws Error (unsupported) when what was to land there before has not been summed.
  [[nodiscard]] Buffer land(BlockUseId use, std::size_t chunks, Action& action);

  /// Says that \p chunk brings a part of \p use's gradient, and adds the accumulations that this
  /// makes due.
  void landed(BlockUseId use, RoundId round, ActionId chunk);

 private:
  struct Landing {
    std::optional<Buffer> buffer;
    std::size_t chunks = 0;  // still to be downloaded
    ActionId landed;         // the latest of them

    [[nodiscard]] bool is_complete() const noexcept { return buffer && chunks == 0; }
  };

  [[nodiscard]] Landing& landing(BlockUseId use, RoundId round) {
    return landings_[round.index() * call_.input.blocks.uses.size() + use.index()];
  }

  /// Whether \p round is one of this rank's.
  [[nodiscard]] bool is_own(RoundId round) const {
    return round.index() < call_.input.shape.rounds;
  }

  /// Those of \p block that are due.
  void add_accumulations(BlockId block, RoundId round);
  /// Those of all blocks, if all gradients of \p round have landed, \p last the last one.
  void add_round(RoundId round, ActionId last);

  void add_accumulation(BlockUseId use, RoundId round, bool first, Landing const& landing);

  /// The blocks whose gradients are summed, in the order in which a round reduces them.
  [[nodiscard]] std::vector<BlockId> blocks_as_completed() const;
  /// The reductions that are next in the order of all ranks, as far as what they add has landed.
  void add_reductions();
  void add_reduction(BlockId block, RoundId round);

  /// An action that adds to the sum of \p block in \p round, without what it adds.
  [[nodiscard]] Action make_sum(BlockId block, RoundId round) const;
  /// Adds \p action, which writes a sum and frees the landings that it reads.
  void add_sum(Action action);

  CallContext& call_;
  LandingRings rings_;
  std::vector<Landing> landings_;         // by round, use
  std::vector<std::size_t> accumulated_;  // by round, block: the uses that are summed
  std::vector<bool> waiting_;             // by ring: whether a landing is not summed
  std::vector<BlockId> reduced_;          // with several ranks: the order of a round's reductions
  std::size_t reductions_ = 0;            // that are added
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/gradient_sums.ipp>
#endif
