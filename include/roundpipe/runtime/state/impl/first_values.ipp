// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/runtime/state/first_values.hpp>
#include <roundpipe/runtime/state/initialize.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

ROUNDPIPE_INLINE void set_first_values(ParameterMemory const& memory,
                                       std::uint64_t seed,
                                       WorkerPool& pool) {
  for (std::size_t b = 0; b < memory.blocks().blocks.size(); ++b) {
    memory.for_each_updated_array(BlockId(b), [&](HostArray const& array) {
      pool.place_shards(array.bytes(), size_of(array.dtype), host_work_grain);
    });
    auto const& specs = memory.blocks().blocks[b].specs;
    for (std::size_t t = 0; t < specs.size(); ++t) {
      auto const size = specs[t].tensor.shape.size();
      pool.for_each_part(size, host_work_grain, [&](std::size_t begin, std::size_t end) {
        std::array<float, 4096> values;
        for (auto first = begin; first < end; first += values.size()) {
          HostSpan<float> const some(values.data(), std::min(values.size(), end - first));
          initialize(specs[t], seed, b, t, some, first);
          memory.write_weights(BlockId(b), t, some, first);
        }
      });
    }
  }
}

}  // namespace roundpipe
