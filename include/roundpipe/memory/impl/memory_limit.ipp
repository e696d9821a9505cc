// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_limit.hpp>
#include <roundpipe/memory/stage_memory.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::string misfit(StageMemory const& memory, Bytes budget) {
  auto const last = memory.layers() - 1;
  for (std::size_t layer = 0; layer <= last; ++layer) {
    for (auto const direction : {StageDirection::forward, StageDirection::backward}) {
      auto const forward = direction == StageDirection::forward;
      if (forward && layer == last) {
        continue;  // it is always in the fused stage
      }
      if (auto const bytes = memory.bytes(direction, {layer, 1}); bytes > budget) {
        return "layer " + std::to_string(layer) + " alone needs " + std::to_string(bytes) +
               " bytes (" + format_bytes(bytes) + ") as " +
               (forward         ? "a forward stage"
                : layer == last ? "the fused stage"
                                : "a backward stage");
      }
    }
  }
  return {};
}

}  // namespace detail

ROUNDPIPE_INLINE std::function<bool(StageDirection, LayerRange)> fits_within(StageMemory memory,
                                                                             Bytes budget) {
  require(memory.layers() > 0, Errc::invalid_argument, "a model without layers has no stages");
  // Where each layer fits alone there is a partition: one layer a stage.
  if (auto const reason = detail::misfit(memory, budget); !reason.empty()) {
    if (auto const least = memory.least(); least > budget) {
      throw Error(Errc::over_budget,
                  "no partition fits " + std::to_string(budget) + " bytes (" +
                      format_bytes(budget) + ") of device memory: " + reason +
                      "; the least that would do is " + std::to_string(least) + " bytes (" +
                      format_bytes(least) + ")");
    }
  }
  auto const shared = std::make_shared<StageMemory const>(std::move(memory));
  return [shared, budget](StageDirection direction, LayerRange range) {
    return shared->bytes(direction, range) <= budget;
  };
}

}  // namespace roundpipe
