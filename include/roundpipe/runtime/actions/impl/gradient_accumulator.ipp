// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/optim/stochastic_rounding.hpp>
#include <roundpipe/runtime/actions/gradient_accumulator.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/rounding_key.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace roundpipe {

ROUNDPIPE_INLINE void GradientAccumulator::run(RunState const& run, ActionId id) {
  auto const& action = run.program()[id];
  auto const& call = run.call();
  accumulate(action.use, action.round, action.first && call.begins_gradients, call.iteration);
}

ROUNDPIPE_INLINE void GradientAccumulator::accumulate(BlockUseId use,
                                                      RoundId round,
                                                      bool begins,
                                                      std::uint64_t iteration) {
  add(memory_.blocks().use(use).block, memory_.landing(use, round, iteration), begins, iteration);
}

ROUNDPIPE_INLINE void GradientAccumulator::add(BlockId block,
                                               HostBytes bytes,
                                               bool begins,
                                               std::uint64_t iteration) {
  auto& addition = additions_[block.index()];
  addition = begins ? 0 : addition + 1;
  for (std::size_t t = 0; t < memory_.tensors(block); ++t) {
    auto const sum = memory_.gradient(block, t, iteration);
    auto const landed = memory_.sent(block, t, bytes);
    auto const first = memory_.own(block, t).begin;
    auto const key = sum_rounding_key(seed_, iteration, block, t, addition);
    pool_.for_each_part(sum.size, host_work_grain, [&](std::size_t begin, std::size_t end) {
      auto const from = landed.part(begin, end);
      auto const to = sum.part(begin, end);
      if (to.dtype == DType::f32) {
        widen(from.bytes(), from.dtype, {reinterpret_cast<float*>(to.data), to.size}, !begins);
      } else if (begins) {
        std::memcpy(to.data, from.data, from.bytes().size());
      } else {
        add_stochastically(from.bytes(), to.bytes(), key, first + begin);
      }
    });
  }
}

ROUNDPIPE_INLINE bool GradientAccumulator::sums_any(ParameterBlocks const& blocks) {
  return std::any_of(blocks.blocks.begin(), blocks.blocks.end(), [](auto const& block) {
    return block.sums_gradient;
  });
}

}  // namespace roundpipe
