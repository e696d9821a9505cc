// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/host_progress.hpp>

#include <roundpipe/backend/host_backend.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace host_progress_test {

using namespace roundpipe;

namespace {

HostLaneTraits const lanes[] = {{LaneKind::accumulate},
                                {LaneKind::parameter_copy},
                                {.kind = LaneKind::optimizer, .outlives_errors = true}};

}  // namespace

TEST_CASE("each host lane counts its own finished actions") {
  HostBackend backend;
  HostProgress<HostBackend> hosts(backend, lanes);
  CHECK_FALSE(hosts.is_done(LaneKind::optimizer, 1));
  for (std::uint64_t i = 1; i <= 3; ++i) {
    hosts.finish(LaneKind::optimizer, i);
    hosts.wait(LaneKind::optimizer, i);
    CHECK(hosts.is_done(LaneKind::optimizer, i));
    CHECK_FALSE(hosts.is_done(LaneKind::optimizer, i + 1));
  }
  CHECK_FALSE(hosts.is_done(LaneKind::accumulate, 1));
}

TEST_CASE("threads wait until the lane has reached an action") {
  HostBackend backend;
  HostProgress<HostBackend> hosts(backend, lanes);
  std::vector<std::thread> threads;
  std::atomic<int> early = 0;
  std::atomic<std::uint64_t> finished = 0;
  for (std::uint64_t wanted = 1; wanted <= 4; ++wanted) {
    threads.emplace_back([&, wanted] {
      hosts.wait(LaneKind::accumulate, wanted);
      early += finished < wanted ? 1 : 0;
    });
  }
  for (std::uint64_t i = 1; i <= 4; ++i) {
    finished = i;
    hosts.finish(LaneKind::accumulate, i);
  }
  for (auto& thread : threads) {
    thread.join();
  }
  CHECK(early == 0);
}

TEST_CASE("streams wait for the lane's fence") {
  HostBackend backend;
  HostProgress<HostBackend> hosts(backend, lanes);
  auto stream = backend.make_stream(DeviceId(0), LaneKind::compute);
  std::atomic<bool> finishing = false;
  bool seen = false;
  stream.wait(hosts.fence(LaneKind::parameter_copy), 2);
  stream.launch([&] { seen = finishing; });
  hosts.finish(LaneKind::parameter_copy, 1);
  finishing = true;
  hosts.finish(LaneKind::parameter_copy, 2);
  stream.synchronize();
  CHECK(seen);
}

TEST_CASE("released lanes let everybody pass, also when an action finishes late") {
  HostBackend backend;
  HostProgress<HostBackend> hosts(backend, lanes);
  std::thread waiting([&] { hosts.wait(LaneKind::optimizer, 9); });
  hosts.release();
  waiting.join();
  hosts.finish(LaneKind::optimizer, 1);
  hosts.wait(LaneKind::optimizer, 100);
  CHECK(hosts.is_done(LaneKind::accumulate, 100));
}

namespace {

struct HoldingBackend : HostBackend {
  HostFence make_held_fence() {
    ++held_fences;
    return make_fence();
  }
  int held_fences = 0;
};

}  // namespace

TEST_CASE(
    "an abort leaves the fence of a lane that outlives errors closed, and the end of the lane "
    "opens it") {
  HoldingBackend backend;
  HostProgress<HoldingBackend> hosts(backend, lanes);
  CHECK(backend.held_fences == 1);
  auto stream = backend.make_stream(DeviceId(0), LaneKind::gradient_down);
  std::atomic<bool> ending = false;
  bool seen = false;
  stream.wait(hosts.fence(LaneKind::optimizer), 7);
  stream.launch([&] { seen = ending; });
  hosts.finish(LaneKind::optimizer, 1);
  ending = true;
  hosts.end(LaneKind::optimizer);
  stream.synchronize();
  CHECK(seen);
}

}  // namespace host_progress_test
