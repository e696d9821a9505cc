// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/plan/ring_pools.hpp>

#include <algorithm>
#include <cstddef>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE Ring RingPools::take(
    BufferKind kind, DeviceId device, std::size_t from, std::size_t until, Bytes bytes) {
  auto& pools = pools_[kind == BufferKind::checkpoint ? 0 : 1];
  pools.resize(std::max(pools.size(), device.index() + 1));
  auto& pool = pools[device.index()];
  while (!pool.used.empty() && pool.used.top().first < from) {
    pool.free.push(pool.used.top().second);
    pool.used.pop();
  }
  if (pool.free.empty()) {
    pool.free.push(pool.count++);
  }
  auto const ring = pool.free.top();
  pool.free.pop();
  pool.used.emplace(until, ring);
  auto& size = sizes_.of(kind);
  size.count = std::max(size.count, pool.count);
  size.entry_bytes = std::max(size.entry_bytes, align_up(bytes));
  return {kind, device, ring};
}

}  // namespace detail

}  // namespace roundpipe
