// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/backend/host_root.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <future>
#include <limits>
#include <memory>
#include <utility>

namespace host_root_test {

namespace {

using namespace roundpipe;
using namespace roundpipe::detail;
using namespace std::chrono_literals;

constexpr double rate = 1e8;
constexpr Bytes bytes_of_10ms = 1000000;  // at that rate
constexpr std::size_t crowd = 300;        // so many transfers that 10 ms become 3 s
constexpr auto crowded = 1500ms;          // far from both

/// Waits until nothing of \p flow is left. Returns the time since \p start.
HostClock::duration time_of(HostRoot::Flow& flow, HostClock::time_point start) {
  CHECK(flow.wait_until_left({}));
  return HostClock::now() - start;
}

}  // namespace

TEST_CASE("a transfer takes its bytes at the rate of its link or of the root, the lower one") {
  for (auto const& [root_rate, link_rate] : {std::pair{rate, HostRoot::unlimited},
                                             std::pair{0.0, rate},
                                             std::pair{rate, 9e9},
                                             std::pair{9e9, rate}}) {
    HostRoot root(std::make_shared<HostStatus>(), root_rate);
    auto const start = HostClock::now();
    HostRoot::Flow flow(root, bytes_of_10ms, link_rate);
    auto const took = time_of(flow, start);
    CHECK(took >= 10ms);
    CHECK(took < crowded);
  }
}

TEST_CASE("each of n transfers in flight gets 1/n of the root's rate") {
  HostRoot root(std::make_shared<HostStatus>(), rate);
  std::deque<HostRoot::Flow> flows;  // all are in flight to the end
  for (int n = 1; n <= 4; ++n) {
    auto const start = HostClock::now();
    flows.emplace_back(root, bytes_of_10ms / 10, HostRoot::unlimited);
    CHECK(time_of(flows.back(), start) >= n * 1ms);
  }
}

TEST_CASE("transfers share nothing when only their links have rates") {
  HostRoot root(std::make_shared<HostStatus>(), 0);
  std::deque<HostRoot::Flow> flows;
  for (std::size_t i = 0; i < crowd; ++i) {
    flows.emplace_back(root, bytes_of_10ms, rate);
  }
  CHECK(time_of(flows.back(), HostClock::now()) < crowded);
}

TEST_CASE("a transfer that waits speeds up when others end") {
  HostRoot root(std::make_shared<HostStatus>(), rate);
  std::deque<HostRoot::Flow> others;
  for (std::size_t i = 0; i < crowd; ++i) {
    others.emplace_back(root, 0, HostRoot::unlimited);
  }
  HostRoot::Flow flow(root, bytes_of_10ms, HostRoot::unlimited);
  auto const wait = std::async(std::launch::async, [&] { return flow.wait_until_left({}); });
  CHECK(wait.wait_for(20ms) == std::future_status::timeout);
  others.clear();
  CHECK(wait.wait_for(crowded) == std::future_status::ready);
}

TEST_CASE("a wait may end ahead of the transfer") {
  HostRoot root(std::make_shared<HostStatus>(), rate);
  auto const start = HostClock::now();
  HostRoot::Flow flow(root, 300 * bytes_of_10ms, HostRoot::unlimited);
  for (auto const expected : {10ms, 20ms}) {
    CHECK(flow.wait_until_left(3s - expected));
    auto const took = HostClock::now() - start;
    CHECK(took >= expected);
    CHECK(took < crowded);
  }
}

TEST_CASE("no transfer fails but by a stop, which ends its wait") {
  auto const status = std::make_shared<HostStatus>();
  HostRoot slow(status, 1e-300);
  HostRoot unlimited(status, 0);
  HostRoot::Flow endless(slow, 1, HostRoot::unlimited);
  HostRoot::Flow short_one(unlimited, std::numeric_limits<Bytes>::max(), HostRoot::unlimited);
  CHECK(short_one.wait_until_left({}));
  auto wait = std::async(std::launch::async, [&] { return endless.wait_until_left({}); });
  CHECK(wait.wait_for(5ms) == std::future_status::timeout);
  status->abort();
  CHECK_FALSE(wait.get());
  CHECK_FALSE(short_one.wait_until_left({}));
}

}  // namespace host_root_test
