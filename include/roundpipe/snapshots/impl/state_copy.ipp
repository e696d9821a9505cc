// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/state_copy.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace roundpipe {

namespace detail {

/// Calls `f(tensor)` for each tensor of \p state that a copy holds.
template <class State, class F>
void for_each_changing_tensor(State& state, F&& f) {
  for (auto& parameter : state.parameters) {
    if (parameter.frozen) {
      continue;
    }
    f(parameter.weights);
    for (auto& tensor : parameter.optimizer) {
      f(tensor);
    }
    if (state.position.is_stale()) {
      f(parameter.visible);
    }
  }
}

/// What a tensor takes: whole cache lines.
[[nodiscard]] ROUNDPIPE_INLINE Bytes copied_bytes(HostTensor const& tensor) noexcept {
  return align_up(tensor.bytes.size(), 64);
}

}  // namespace detail

ROUNDPIPE_INLINE Bytes StateCopy::bytes_of(TrainingState const& state) noexcept {
  Bytes bytes = 0;
  detail::for_each_changing_tensor(
      state, [&](HostTensor const& tensor) { bytes += detail::copied_bytes(tensor); });
  return bytes;
}

ROUNDPIPE_INLINE TrainingState StateCopy::take(TrainingState const& state, WorkerPool& pool) {
  auto const size = bytes_of(state);
  if (size > capacity_) {
    capacity_ = 0;
    memory_.reset();  // before more is taken
    memory_ = std::make_unique_for_overwrite<std::byte[]>(size);
    capacity_ = size;
  }
  struct Part {
    HostSpan<std::byte const> from;
    Bytes begin;  // in the memory
  };
  std::vector<Part> parts;
  auto result = state;
  Bytes end = 0;
  detail::for_each_changing_tensor(result, [&](HostTensor& tensor) {
    parts.push_back({tensor.bytes, end});
    tensor.bytes = {memory_.get() + end, tensor.bytes.size()};
    end += detail::copied_bytes(tensor);
  });
  pool.for_each_part(size, 64, [&](std::size_t first, std::size_t last) {
    for (auto const& [from, begin] : parts) {
      auto const low = std::max(first, begin);
      auto const high = std::min(last, begin + from.size());
      if (low < high) {
        std::memcpy(memory_.get() + low, from.data() + (low - begin), high - low);
      }
    }
  });
  return result;
}

}  // namespace roundpipe
