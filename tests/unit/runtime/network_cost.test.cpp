// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/network_cost.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace network_cost_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// What each of three ranks measures.
std::array<NetworkCost, 3> measured(LoopbackOptions const& options,
                                    std::function<Bytes(std::size_t rank)> const& memory_of) {
  LoopbackNetwork network(3, options);
  std::array<NetworkCost, 3> costs;
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      LoopbackGroup group(network, r);
      std::vector<std::byte> memory(memory_of(r));
      costs[r] = measure_network(group, memory);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return costs;
}

}  // namespace

TEST_CASE("a network's rate and latency are those of a line through two exchanges") {
  // 1000 bytes a second behind 2 s.
  auto const found = fit_network({100, 2.1}, {4100, 6.1});
  CHECK(found.bytes_per_second == doctest::Approx(1000));
  CHECK(found.latency_s == doctest::Approx(2));
  // What takes no longer for more bytes has a latency alone.
  CHECK(fit_network({100, 2}, {4100, 1.5}) == NetworkCost{0, 2});
  // Noise makes no latency negative.
  CHECK(fit_network({1000, 0.1}, {2000, 1.1}).latency_s == 0);
}

TEST_CASE("ranks measure one network, no faster than it is") {
  using std::chrono::milliseconds;
  // Messages of two others, one after another: at 1 MB/s, behind 3 ms. A busy machine takes longer
  // for either size, nobody knows how much.
  auto const costs = measured({.bytes_per_second = 1e6, .latency = milliseconds(3)},
                              [](std::size_t rank) { return Bytes{60'000} + 9000 * rank; });
  CHECK(costs[1] == costs[0]);
  CHECK(costs[2] == costs[0]);
  auto const seconds = [&](double received) {
    auto const rate = costs[0].bytes_per_second;
    return costs[0].latency_s + (rate > 0 ? received / rate : 0);
  };
  CHECK(seconds(2) >= 3e-3);
  CHECK((costs[0].bytes_per_second == 0 || seconds(40'000) >= 42.9e-3));
}

TEST_CASE("one rank has no network, and several need memory to measure theirs") {
  CHECK(measure_network({}, {}) == NetworkCost{});
  LoopbackNetwork network(2);
  std::array<Errc, 2> codes{};
  std::array<std::thread, 2> threads;
  for (std::size_t r = 0; r < 2; ++r) {
    threads[r] = std::thread([&, r] {
      LoopbackGroup group(network, r);
      std::vector<std::byte> memory(r == 0 ? 1000 : 1);
      auto const error = error_of([&] { (void)measure_network(group, memory); });
      codes[r] = error.code() == Errc::invalid_argument ? Errc::invalid_argument : Errc::aborted;
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  CHECK(codes == std::array{Errc::invalid_argument, Errc::invalid_argument});
}

}  // namespace network_cost_test
