// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/ring_pools.hpp>

#include <doctest/doctest.h>

namespace ring_pools_test {

using namespace roundpipe;
using detail::RingPools;

TEST_CASE("a ring is free behind the last pass of who had it, and the first free one is next") {
  RingPools pools;
  auto const take = [&](std::size_t from, std::size_t until) {
    return pools.take(BufferKind::checkpoint, DeviceId(0), from, until, 8).index;
  };
  CHECK(take(1, 5) == 0);
  CHECK(take(2, 3) == 1);
  CHECK(take(3, 9) == 2);  // pass 3 still reads the second
  CHECK(take(4, 6) == 1);
  CHECK(take(6, 7) == 0);
  CHECK(take(7, 8) == 1);
  CHECK(pools.sizes().checkpoints.count == 3);
  CHECK(take(10, 10) == 0);
  CHECK(pools.sizes().checkpoints.count == 3);
}

TEST_CASE("each device and kind has a pool, as large as the largest needs") {
  RingPools pools;
  auto const first = pools.take(BufferKind::checkpoint, DeviceId(2), 1, 4, 300);
  CHECK(first.kind == BufferKind::checkpoint);
  CHECK(first.device == DeviceId(2));
  CHECK(first.index == 0);
  CHECK(pools.take(BufferKind::checkpoint, DeviceId(0), 2, 4, 8).index == 0);
  CHECK(pools.take(BufferKind::boundary_gradient, DeviceId(2), 3, 4, 8).index == 0);
  CHECK(pools.take(BufferKind::checkpoint, DeviceId(2), 3, 4, 8).index == 1);
  CHECK(pools.sizes().checkpoints.count == 2);
  CHECK(pools.sizes().checkpoints.entry_bytes == 512);
  CHECK(pools.sizes().gradients.count == 1);
  CHECK(pools.sizes().gradients.entry_bytes == 256);
}

}  // namespace ring_pools_test
