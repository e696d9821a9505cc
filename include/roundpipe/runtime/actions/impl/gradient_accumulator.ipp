// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/actions/gradient_accumulator.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

ROUNDPIPE_INLINE void GradientAccumulator::run(RunState const& run, ActionId id) {
  auto const& action = run.program()[id];
  auto const& call = run.call();
  accumulate(action.use, action.first && call.begins_gradients, call.iteration);
}

ROUNDPIPE_INLINE void GradientAccumulator::accumulate(BlockUseId use,
                                                      bool begins,
                                                      std::uint64_t iteration) {
  auto const block = memory_.blocks().use(use).block;
  for (std::size_t t = 0; t < memory_.tensors(block); ++t) {
    auto const sum = memory_.gradient(block, t, iteration);
    auto const landed = memory_.landed(use, t);
    pool_.for_each_part(sum.size, host_work_grain, [&](std::size_t begin, std::size_t end) {
      widen(landed.part(begin, end).bytes(),
            landed.dtype,
            {reinterpret_cast<float*>(sum.data) + begin, end - begin},
            !begins);
    });
  }
}

ROUNDPIPE_INLINE bool GradientAccumulator::sums_any(ParameterBlocks const& blocks) {
  return std::any_of(blocks.blocks.begin(), blocks.blocks.end(), [](auto const& block) {
    return block.sums_gradient;
  });
}

}  // namespace roundpipe
