// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/runtime/batch_feed.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/state/batch_staging.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>

#include <cstddef>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE void require_call_size(Batch const& batch,
                                        std::size_t micro_batches_per_round,
                                        std::size_t rounds) {
  auto const wanted = micro_batches_per_round * rounds;
  if (batch.size() != wanted) {
    throw Error(Errc::invalid_argument,
                "the batch has " + std::to_string(batch.size()) +
                    " micro-batches; the pipeline runs " + std::to_string(wanted) +
                    " a call: " + std::to_string(micro_batches_per_round) + " in each of " +
                    std::to_string(rounds) + " rounds");
  }
}

ROUNDPIPE_INLINE void take_staging(CallData& call,
                                   std::size_t micro_batches,
                                   Bytes batch_bytes,
                                   Bytes result_bytes,
                                   TakeHostMemory const& take) {
  for (std::size_t m = 0; m < micro_batches; ++m) {
    call.batch.push_back(take(batch_bytes));
    call.losses.push_back(take(sizeof(double)));
    call.results.push_back(take(result_bytes));
  }
}

}  // namespace roundpipe
