// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/backend/host_fence.hpp>

#include <roundpipe/backend/host_backend.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace host_fence_test {

namespace {

using namespace roundpipe;
using namespace roundpipe::detail;

/// Whether \p wait ends, even on a busy machine.
bool ends(auto const& wait) {
  return wait.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
}

}  // namespace

TEST_CASE("a wait ends with the first signal of its value or more, or with a stop") {
  auto const status = std::make_shared<HostStatus>();
  HostFenceState state(status);
  std::atomic<int> signals = 0;
  std::vector<std::future<int>> waits;  // each returns how many signals it saw
  for (std::uint64_t value = 0; value <= 6; ++value) {
    waits.push_back(std::async(std::launch::async, [&, value] {
      state.wait(value);
      return signals.load();
    }));
  }
  std::size_t passed = 0;
  CHECK(ends(waits[passed++]));  // at first, the value is 0
  for (std::uint64_t const value : {2U, 1U, 2U, 5U, 3U}) {
    ++signals;
    state.signal(value);
    for (; passed <= value; ++passed) {
      CHECK(ends(waits[passed]));
    }
  }
  auto const late = std::async(std::launch::async, [&] { state.wait(5); });
  CHECK(ends(late));  // the later signal of 3 did not lower the value
  ++signals;
  status->abort();
  std::vector<int> seen;
  for (auto& wait : waits) {
    seen.push_back(wait.get());
  }
  CHECK(seen == std::vector{0, 1, 1, 4, 4, 4, 6});
}

TEST_CASE("several threads may signal at once, and the highest value counts") {
  constexpr auto highest = std::numeric_limits<std::uint64_t>::max();
  auto const status = std::make_shared<HostStatus>();
  HostFenceState state(status);
  auto const wait = std::async(std::launch::async, [&] { state.wait(highest); });
  {
    std::vector<std::future<void>> signalling;
    for (std::uint64_t thread = 0; thread < 4; ++thread) {
      signalling.push_back(std::async(std::launch::async, [&, thread] {
        for (std::uint64_t i = 0; i < 100; ++i) {
          state.signal(i == 50 ? highest - thread : i);
        }
      }));
    }
  }
  CHECK(ends(wait));
  status->abort();
}

TEST_CASE("a fence that moves keeps its value and its waiters") {
  HostBackend backend;
  auto stream = backend.make_stream(DeviceId{0}, LaneKind::compute);
  auto fence = backend.make_fence();
  int value = 0;
  int seen = 0;
  fence.signal(1);
  stream.wait(fence, 2);
  stream.launch([&] { seen = value; });
  HostFence moved(std::move(fence));
  stream.wait(moved, 1);
  fence = backend.make_fence();
  fence.signal(2);  // nothing waits for this one
  value = 1;
  moved.signal(2);
  stream.synchronize();
  CHECK(seen == 1);
}

}  // namespace host_fence_test
