// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/id.hpp>
#include <roundpipe/optim/update_pass.hpp>
#include <roundpipe/runtime/actions/parameter_copier.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstddef>
#include <mutex>

namespace roundpipe {

ROUNDPIPE_INLINE void ParameterCopier::copy(BlockId block) {
  std::lock_guard const lock(memory_.copying());
  for (std::size_t t = 0; t < memory_.tensors(block); ++t) {
    auto const weights = memory_.weights(block, t, 0);
    auto const master = memory_.master(block, t, 0);
    pool_.for_each_part(weights.size, host_work_grain, [&](std::size_t begin, std::size_t end) {
      copy_pass({weights.part(begin, end), {}, {}, master.part(begin, end)});
    });
  }
}

}  // namespace roundpipe
