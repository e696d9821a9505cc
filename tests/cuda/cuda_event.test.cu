// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/cuda_event.hpp>
#include <support/cuda_workers.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>

using namespace roundpipe;
using test::d0;
using test::one_worker;
using test::two_workers;

TEST_CASE("an event that was never recorded counts as reached, and a wait keeps its record") {
  cu::CudaBackend backend(one_worker());
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto other = backend.make_stream(d0, LaneKind::activation_up);
  auto fence = backend.make_fence();
  auto event = backend.make_event(d0);
  event.wait();
  CHECK(event.ready());
  other.wait(event);
  other.synchronize();
  stream.wait(fence, 1);
  stream.record(event);
  CHECK_FALSE(event.ready());
  auto later = backend.make_event(d0);
  other.wait(event);
  other.record(later);
  CHECK_FALSE(later.ready());
  fence.signal(1);
  later.wait();
  CHECK(event.ready());
  CHECK(later.ready());
}

TEST_CASE("events measure the time between them") {
  cu::CudaBackend backend(two_workers());
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto start = backend.make_event(d0);
  auto end = backend.make_event(d0);
  auto const memory = backend.allocate_device(d0, 32_MiB);
  stream.annotate("fills");
  stream.record(start);
  for (int i = 0; i < 20; ++i) {
    stream.fill(memory.bytes(), std::byte{1});
  }
  stream.record(end);
  stream.annotate(nullptr);
  end.wait();
  CHECK(end.seconds_since(start) > 20 * 32.0 * (1 << 20) / 1e14);
  CHECK(start.seconds_since(start) == 0);
}

TEST_CASE("a moved event keeps its record") {
  cu::CudaBackend backend(one_worker());
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto fence = backend.make_fence();
  auto event = backend.make_event(d0);
  auto const handle = event.get();
  stream.wait(fence, 1);
  stream.record(event);
  auto moved = std::move(event);
  CHECK(moved.get() == handle);
  CHECK(cu::EventRef(moved).get() == handle);
  CHECK_FALSE(moved.ready());
  fence.signal(1);
  moved.wait();
  CHECK(moved.ready());
}
