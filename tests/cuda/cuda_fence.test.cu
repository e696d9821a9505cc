// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/cuda_fence.hpp>
#include <support/cuda_workers.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

using namespace roundpipe;
using test::d0;
using test::one_worker;
using test::two_workers;

TEST_CASE("streams wait for fences on the device, or on the host where they must") {
  auto on_host = one_worker();
  on_host.waits_on_device = false;
  // Workers that share a device also wait on the host.
  for (auto const& options : {one_worker(), on_host, two_workers()}) {
    CAPTURE(options.waits_on_device);
    CAPTURE(options.devices.size());
    cu::CudaBackend backend(options);
    auto stream = backend.make_stream(d0, LaneKind::parameter_up);
    auto fence = backend.make_fence();
    auto const from = backend.allocate_host(64);
    auto const there = backend.allocate_device(d0, 64);
    auto const back = backend.allocate_host(64);
    std::thread host([&] {
      std::memset(from.bytes().data(), 42, 64);
      fence.signal(3);
      fence.signal(2);  // changes nothing
    });
    stream.wait(fence, 1);
    stream.wait(fence, 3);
    stream.copy(there.bytes(), from.bytes());
    stream.copy(back.bytes(), there.bytes());
    stream.synchronize();
    host.join();
    CHECK(back.bytes().front() == std::byte{42});
  }
}

TEST_CASE("of several values that are signalled at once the highest stays") {
  cu::CudaBackend backend(one_worker());
  auto stream = backend.make_stream(d0, LaneKind::parameter_up);
  auto fence = backend.make_fence();
  constexpr std::uint64_t highest = 400;
  stream.wait(fence, highest);
  auto event = backend.make_event(d0);
  stream.record(event);
  std::vector<std::thread> hosts;
  for (std::uint64_t first = 1; first <= 4; ++first) {
    hosts.emplace_back([&fence, first] {
      for (std::uint64_t value = first; value < highest; value += 4) {
        fence.signal(value);
      }
    });
  }
  for (auto& host : hosts) {
    host.join();
  }
  CHECK_FALSE(event.ready());
  fence.signal(highest);
  event.wait();
}

TEST_CASE("a moved fence lets those pass who waited for it before") {
  cu::CudaBackend backend(one_worker());
  auto stream = backend.make_stream(d0, LaneKind::parameter_up);
  auto fence = backend.make_fence();
  stream.wait(fence, 1);
  auto moved = std::move(fence);
  moved.signal(1);
  stream.synchronize();

  auto other = backend.make_fence();
  other.signal(5);
  moved = std::move(other);
  stream.wait(moved, 5);
  stream.synchronize();
}

TEST_CASE("an abort leaves a held fence to its owner") {
  cu::CudaBackend backend(one_worker());
  auto stream = backend.make_stream(d0, LaneKind::parameter_up);
  auto event = backend.make_event(d0);
  auto fence = backend.make_held_fence();
  stream.wait(fence, 1);
  stream.record(event);
  cu::EventRef const reached = event;
  backend.abort();
  CHECK_FALSE(reached.is_done());
  fence.signal(static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  reached.sync();
}
