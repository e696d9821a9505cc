// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The host lane that adds downloaded gradients to sums.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/runtime/execute/host_lane_work.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe {

/// Sums the gradients of blocks that several uses, rounds or calls contribute to.
class GradientAccumulator final : public HostLaneWork {
 public:
  /// \p memory must outlive this. \p seed: of stochastic rounding. It has \p threads threads,
  /// pinned to \p cpus if there are any.
  GradientAccumulator(ParameterMemory const& memory,
                      std::uint64_t seed,
                      std::size_t threads,
                      UsableCpus const& cpus)
      : HostLaneWork({LaneKind::accumulate}),
        memory_(memory),
        seed_(seed),
        additions_(memory.blocks().blocks.size()),
        pool_(sums_any(memory.blocks()) ? threads : 1, cpus) {}

  void run(RunState const& run, ActionId id) override;

  /// Adds what has landed for \p use in \p round to its block's gradient sum, or begins the sum
  /// with it.
  void accumulate(BlockUseId use, RoundId round, bool begins, std::uint64_t iteration);
  /// Adds the gradient of \p block whose own shard \p bytes holds, or begins the sum with it.
  void add(BlockId block, HostBytes bytes, bool begins, std::uint64_t iteration);

 private:
  [[nodiscard]] static bool sums_any(ParameterBlocks const& blocks);

  ParameterMemory const& memory_;
  std::uint64_t seed_;
  std::vector<std::uint32_t> additions_;  // by block: to the sum of the iteration
  WorkerPool pool_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/actions/impl/gradient_accumulator.ipp>
#endif
