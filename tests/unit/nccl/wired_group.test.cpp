// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/nccl/wired_group.hpp>

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/exchange_seconds.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <roundpipe/nccl/faster_from.hpp>
#include <roundpipe/nccl/staged_exchange.hpp>
#include <support/error_of.hpp>
#include <support/fake_wire.hpp>
#include <support/group_conformance.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace wired_group_test {
namespace {

using namespace roundpipe;
using namespace roundpipe::test;
using Group = nccl::WiredGroup<FakeWire>;

/// Calls \p f with each rank of a wired group over \p network, each on a thread of its own.
void on_ranks(LoopbackNetwork& network,
              std::size_t smallest,
              std::size_t piece_bytes,
              std::function<void(Group&, FakeWire&)> const& f) {
  FakeCable cable;
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < network.size(); ++r) {
    threads.emplace_back([&, r] {
      LoopbackGroup other(network, r);
      FakeWire wire(cable, r, network.size(), piece_bytes);
      Group group(other, wire, smallest);
      f(group, wire);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

/// Each rank sends \p bytes to the next one, and nothing else.
void pass_on(Group& group, GroupChannel channel, std::size_t bytes) {
  std::vector<std::byte> const sent(bytes, std::byte{7});
  std::vector<std::byte> received(bytes);
  std::vector<ConstHostBytes> mine(group.size());
  std::vector<HostBytes> theirs(group.size());
  mine[(group.rank() + 1) % group.size()] = sent;
  theirs[(group.rank() + group.size() - 1) % group.size()] = received;
  group.exchange(channel, mine, theirs);
  CHECK(received == sent);
}

}  // namespace

TEST_CASE("a message is cut into pieces alike by both of its ranks, and into no others") {
  std::vector<std::byte> bytes(25);
  std::array const transfers{nccl::Transfer{3, ConstHostBytes(bytes).first(20), {}},
                             nccl::Transfer{5, {}, HostBytes(bytes).first(25)},
                             nccl::Transfer{8, ConstHostBytes(bytes).first(1), {}}};
  CHECK(nccl::step_count(transfers, 10) == 3);
  CHECK(nccl::step_count({}, 10) == 0);
  auto const first = nccl::pieces_of_step(transfers, 0, 10);
  CHECK(first.size() == 3);
  CHECK(first[2].sent.size() == 1);
  auto const second = nccl::pieces_of_step(transfers, 1, 10);
  REQUIRE(second.size() == 2);
  CHECK(second[0].rank == 3);
  CHECK(second[0].sent.data() == bytes.data() + 10);
  CHECK(second[0].sent.size() == 10);
  auto const last = nccl::pieces_of_step(transfers, 2, 10);
  REQUIRE(last.size() == 1);
  CHECK(last[0].rank == 5);
  CHECK(last[0].received.data() == bytes.data() + 20);
  CHECK(last[0].received.size() == 5);
}

TEST_CASE("pieces arrive whole, however the copies and the wire take turns") {
  for (std::size_t slots = 1; slots <= 4; ++slots) {
    CAPTURE(slots);
    FakeCable cable;
    auto const rank = [&](std::size_t own) {
      FakeStaging staging(cable, own, 2, slots, 10);
      auto const sent = group_bytes(103 + 5 * own, own, 1 - own, slots);
      std::vector<std::byte> received(108 - 5 * own);
      std::array const transfers{nccl::Transfer{1 - own, sent, received}};
      nccl::run_staged(staging, transfers, 10, [] { std::this_thread::yield(); });
      CHECK(staging.finished == 11);
      CHECK(received == group_bytes(received.size(), 1 - own, own, slots));
    };
    std::thread other([&] { rank(1); });
    rank(0);
    other.join();
  }
}

TEST_CASE("a wired group is a group, whatever goes over the wire") {
  for (std::size_t ranks = 1; ranks <= 4; ++ranks) {
    for (std::size_t const smallest : {0, 5, 1 << 20}) {
      CAPTURE(ranks);
      CAPTURE(smallest);
      LoopbackNetwork network(ranks,
                              {.seed = ranks, .longest_delay = std::chrono::microseconds(100)});
      on_ranks(network, smallest, 16, [&](Group& group, FakeWire& wire) {
        CHECK(GroupConformance(group).run(3) == std::vector<std::string>());
        auto const many = ranks > 1 && smallest < 1000;
        CHECK((wire.exchanges > 0) == many);
        CHECK(wire.aborts == 0);
      });
    }
  }
}

TEST_CASE("exchanges of two channels go over the wire in one order, whoever calls which first") {
  LoopbackNetwork network(3);
  on_ranks(network, 100, 64, [](Group& group, FakeWire& wire) {
    auto const pass = [&](GroupChannel channel, std::size_t bytes) {
      for (std::size_t i = 0; i < 20; ++i) {
        // Some are too small for the wire, and none are as large as another channel's.
        pass_on(group, channel, i % 4 == 3 ? 10 : bytes + i);
      }
    };
    std::thread weights([&] { pass(GroupChannel::weights, 500); });
    pass(GroupChannel::gradients, 200);
    weights.join();
    CHECK(wire.exchanges == 30);
  });
}

TEST_CASE("an exchange that a rank has not called yet stops none of another channel") {
  LoopbackNetwork network(2);
  on_ranks(network, 0, 64, [](Group& group, FakeWire&) {
    if (group.rank() == 0) {  // its gradients wait until rank 1 has had the weights
      std::thread gradients([&] { pass_on(group, GroupChannel::gradients, 300); });
      pass_on(group, GroupChannel::weights, 200);
      gradients.join();
    } else {
      pass_on(group, GroupChannel::weights, 200);
      pass_on(group, GroupChannel::gradients, 300);
    }
  });
}

TEST_CASE("a wire that breaks on one rank ends the group of all") {
  LoopbackNetwork network(3);
  on_ranks(network, 0, 64, [](Group& group, FakeWire& wire) {
    wire.fails_at = group.rank() == 2 ? 1 : 1000;
    pass_on(group, GroupChannel::weights, 200);
    auto const error = error_of([&] {
      for (;;) {
        pass_on(group, GroupChannel::weights, 200);
      }
    });
    auto const own = group.rank() == 2;
    if (own) {
      CHECK(wire.aborts == 1);
    }
    CHECK(error.code() == (own ? Errc::device_fault : Errc::aborted));
    CHECK(error.message() ==
          (own ? "" : "rank 2 has ended the group: ") + std::string("a cable breaks"));
    CHECK(end_of([&] { pass_on(group, GroupChannel::gradients, 1); }) ==
          "rank 2 has ended the group: a cable breaks");
  });
}

TEST_CASE("a rank that aborts ends exchanges that are on the wire") {
  LoopbackNetwork network(2);
  on_ranks(network, 0, 64, [](Group& group, FakeWire&) {
    if (group.rank() == 0) {
      group.abort("enough");
    }
    CHECK(end_of([&] {
            for (;;) {
              pass_on(group, GroupChannel::weights, 200);
            }
          }) == "rank 0 has ended the group: enough");
  });
}

TEST_CASE("the wire is for the sizes from which on it is faster") {
  constexpr auto never = std::numeric_limits<std::size_t>::max();
  using Times = std::vector<nccl::ExchangeTimes>;
  CHECK(nccl::faster_from(Times{{1, 5, 6}, {2, 6, 5}, {4, 9, 7}}) == 2);
  CHECK(nccl::faster_from(Times{{1, 5, 4}, {2, 6, 7}, {4, 9, 7}}) == 4);
  CHECK(nccl::faster_from(Times{{1, 5, 4}, {2, 6, 5}}) == 1);
  CHECK(nccl::faster_from(Times{{1, 5, 4}, {2, 6, 6}}) == never);
  CHECK(nccl::faster_from({}) == never);
}

TEST_CASE("all ranks know one time of an exchange, that of the slowest") {
  using std::chrono::milliseconds;
  LoopbackNetwork network(3, {.bytes_per_second = 1e6, .latency = milliseconds(1)});
  std::array<double, 3> seconds{};
  on_ranks(network, 1 << 20, 64, [&](Group& group, FakeWire&) {
    std::vector<std::byte> const mine(1000);
    std::vector<std::byte> theirs(2000);
    seconds[group.rank()] = exchange_seconds(group, GroupChannel::control, mine, theirs, 2);
  });
  CHECK(seconds[0] >= 3e-3);  // two messages of 1 ms each, and the latency
  CHECK(seconds[1] == seconds[0]);
  CHECK(seconds[2] == seconds[0]);
}

}  // namespace wired_group_test
