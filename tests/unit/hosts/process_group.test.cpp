// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/concepts/process_group.hpp>

#include <roundpipe/concepts/requirements.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/hosts/gather_parts.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <roundpipe/hosts/single_process.hpp>
#include <support/error_of.hpp>
#include <support/group_conformance.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace process_group_test {
namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// Calls \p f with each rank of \p network, each on a thread of its own.
void on_ranks(LoopbackNetwork& network, std::function<void(LoopbackGroup&)> const& f) {
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < network.size(); ++r) {
    threads.emplace_back([&, r] {
      LoopbackGroup group(network, r);
      f(group);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

std::vector<std::string> faults_of(LoopbackNetwork& network, std::size_t rounds) {
  std::vector<std::vector<std::string>> wrong(network.size());
  on_ranks(network, [&](LoopbackGroup& group) {
    AnyProcessGroup any(group);
    wrong[group.rank()] = GroupConformance(any).run(rounds);
  });
  std::vector<std::string> all;
  for (auto const& of_rank : wrong) {
    all.insert(all.end(), of_rank.begin(), of_rank.end());
  }
  return all;
}

}  // namespace

TEST_CASE("a single process is a group") {
  SingleProcess process;
  CHECK(GroupConformance(process).run(6).empty());
  AnyProcessGroup any;
  CHECK(any.size() == 1);
  CHECK(any.rank() == 0);
  CHECK(GroupConformance(any).run(2).empty());
  any.abort("enough");
  CHECK(end_of([&] { any.barrier(GroupChannel::control); }) ==
        "rank 0 has ended the group: enough");
  CHECK(end_of([] { AnyProcessGroup().rethrow(); }) == "nothing");  // no two share their end
}

TEST_CASE("a loopback is a group, with any number of ranks and whatever delays") {
  for (std::size_t ranks = 1; ranks <= 5; ++ranks) {
    CAPTURE(ranks);
    LoopbackNetwork prompt(ranks);
    CHECK(faults_of(prompt, 6) == std::vector<std::string>());
    LoopbackNetwork slow(ranks, {.seed = ranks, .longest_delay = std::chrono::microseconds(300)});
    CHECK(faults_of(slow, 4) == std::vector<std::string>());
  }
}

TEST_CASE("a loopback with rates brings bytes no sooner than its links can") {
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  // Each rank sends two messages of 3000 bytes and receives two: 6 ms at 1 byte a microsecond.
  auto fastest = Clock::duration::max();  // for a busy machine may take long over anything
  for (int i = 0; i < 20; ++i) {
    LoopbackNetwork network(3, {.bytes_per_second = 1e6, .latency = milliseconds(10)});
    auto const begin = Clock::now();
    on_ranks(network, [](LoopbackGroup& group) {
      std::vector<std::byte> const mine(3000);
      std::vector<std::byte> all(9000);
      group.gather(GroupChannel::weights, mine, all);
    });
    fastest = std::min(fastest, Clock::now() - begin);
  }
  CHECK(fastest >= milliseconds(16));
  LoopbackNetwork conforming(3, {.bytes_per_second = 1e9});
  CHECK(faults_of(conforming, 4) == std::vector<std::string>());
}

TEST_CASE("a rank that aborts ends the operations of all, and the first reason stays") {
  LoopbackNetwork network(3);
  std::array<std::string, 3> ends;
  on_ranks(network, [&](LoopbackGroup& group) {
    if (group.rank() == 1) {
      group.abort("out of patience");
      group.abort("late");
    }
    ends[group.rank()] = end_of([&] {
      for (;;) {
        group.barrier(GroupChannel::gradients);
      }
    });
    CHECK(end_of([&] { group.rethrow(); }) == ends[group.rank()]);
  });
  for (auto const& end : ends) {
    CHECK(end == "rank 1 has ended the group: out of patience");
  }
}

TEST_CASE("a loopback fails where its options want it, and ends ranks that disagree") {
  LoopbackNetwork faulty(2, {.fault = LoopbackFault{.rank = 1, .operation = 2}});
  std::array<int, 2> barriers{};
  on_ranks(faulty, [&](LoopbackGroup& group) {
    auto const error = error_of([&] {
      for (;;) {
        group.barrier(GroupChannel::control);
        ++barriers[group.rank()];
      }
    });
    if (group.rank() == 1) {
      CHECK(error.code() == Errc::device_fault);
      CHECK(error.message().find("operation 2 of rank 1") != std::string::npos);
      group.abort(error.message());
    } else {
      CHECK(error.code() == Errc::aborted);
    }
  });
  CHECK(barriers[1] == 2);
  // Rank 0 was in its second barrier or past it when rank 1 ended the group.
  CHECK(barriers[0] >= 1);
  CHECK(barriers[0] <= 2);

  LoopbackNetwork differing(2);
  on_ranks(differing, [&](LoopbackGroup& group) {
    std::vector<std::byte> const mine(1 + group.rank());
    std::vector<std::byte> all(2 * mine.size());
    auto const error = error_of([&] {
      for (;;) {
        group.gather(GroupChannel::control, mine, all);
      }
    });
    CHECK(error.message().find("has sent rank") != std::string::npos);
  });
}

TEST_CASE("arguments that cannot be right are refused, and nothing ends") {
  LoopbackNetwork network(1);
  LoopbackGroup group(network, 0);
  SingleProcess process;
  std::vector<std::byte> two(2);
  std::vector<std::byte> three(3);
  auto const refuses = [&](auto& any) {
    auto const code = [&](auto const& f) { return error_of([&] { f(any); }).code(); };
    auto const channel = GroupChannel::control;
    CHECK(code([&](auto& g) { g.gather(channel, two, three); }) == Errc::invalid_argument);
    CHECK(code([&](auto& g) { g.broadcast(channel, 1, two); }) == Errc::invalid_argument);
    std::array const mine{ConstHostBytes(two)};
    std::array const theirs{HostBytes(three)};
    CHECK(code([&](auto& g) { g.exchange(channel, mine, theirs); }) == Errc::invalid_argument);
    CHECK(code([&](auto& g) { g.exchange(channel, mine, {}); }) == Errc::invalid_argument);
    std::array const parts{HostBytes(two), HostBytes(three)};
    CHECK(code([&](auto& g) { gather_parts(g, channel, parts); }) == Errc::invalid_argument);
    any.rethrow();
  };
  refuses(group);
  refuses(process);
  CHECK(error_of([&] { LoopbackGroup(network, 1); }).code() == Errc::invalid_argument);
  CHECK(error_of([] { LoopbackNetwork none(0); }).code() == Errc::invalid_argument);
}

}  // namespace process_group_test
