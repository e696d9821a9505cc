// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/actions/gradient_reducer.hpp>

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <support/error_of.hpp>
#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace gradient_reducer_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A rank with a tied model, whose shared block is the first, and what has landed there.
struct Rank {
  HostParameters host;
  LoopbackGroup group;
  GradientReducer reducer;

  Rank(LoopbackNetwork& network,
       std::size_t rank,
       HostParameters::Setup const& setup,
       DealtRounds const& deal = {2, 1})
      : host(setup),
        group(network, rank),
        reducer(group, deal, host.memory, host.accumulator, host.arena.taker()) {}

  std::vector<float> sum(std::uint64_t iteration) {
    auto const gradient = host.memory.gradient(BlockId(0), 0, iteration);
    std::vector<float> values(gradient.size);
    widen(gradient.bytes(), gradient.dtype, values, false);
    return values;
  }
};

/// Calls \p f with both ranks of \p network, each on a thread.
void on_both(LoopbackNetwork& network,
             HostParameters::Setup const& setup,
             std::function<void(Rank&, std::size_t)> const& f,
             DealtRounds const& deal = {2, 1}) {
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Rank rank(network, r, setup, deal);
      f(rank, r);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

}  // namespace

TEST_CASE("every rank sums rank after rank and use after use, to the same bits") {
  LoopbackNetwork network(2);
  // Next to 1e8, small numbers are lost: in this order alone, 2 is left.
  constexpr float landed[2][2] = {{1e8F, 1}, {-1e8F, 2}};  // by rank, by use
  std::array<std::vector<float>, 2> sums;
  std::array<std::vector<float>, 2> longer;
  on_both(network, {.type = DType::f32, .tied = true}, [&](Rank& rank, std::size_t r) {
    auto const& uses = rank.host.blocks.blocks[0].uses;
    for (std::size_t u = 0; u < uses.size(); ++u) {
      rank.host.land(uses[u], landed[r][u]);
    }
    rank.reducer.reduce(BlockId(0), RoundId(0), true, 1);
    sums[r] = rank.sum(1);
    rank.reducer.reduce(BlockId(0), RoundId(0), false, 1);
    longer[r] = rank.sum(1);
  });
  float expected = 0;
  for (auto* const all : {&sums, &longer}) {
    for (auto const& of_rank : landed) {
      for (auto const value : of_rank) {
        expected += value;
      }
    }
    for (auto const& sum : *all) {
      REQUIRE_FALSE(sum.empty());
      CHECK(sum == std::vector<float>(sum.size(), expected));
    }
  }
  CHECK(expected == 2);
}

TEST_CASE("a round of one rank alone is added on both") {
  LoopbackNetwork network(2);
  std::array<std::vector<float>, 2> sums;
  on_both(
      network,
      {.type = DType::f32, .tied = true},
      [&](Rank& rank, std::size_t r) {
        rank.host.land_all(r == 0 ? 4.0F : 3.0F);
        rank.reducer.reduce(BlockId(0), RoundId(0), true, 1);
        rank.reducer.reduce(BlockId(0), RoundId(1), false, 1);  // rank 1 has it
        sums[r] = rank.sum(1);
      },
      DealtRounds(std::vector<std::size_t>{1, 2}));
  for (auto const& sum : sums) {
    REQUIRE_FALSE(sum.empty());
    CHECK(sum == std::vector<float>(sum.size(), 2 * (4 + 3 + 3)));  // of two uses
  }
}

TEST_CASE("sums of bf16 are rounded at random, with the same numbers on every rank") {
  LoopbackNetwork network(2);
  std::array<std::vector<float>, 2> sums;
  on_both(network,
          {.copies = {.master_copies = 2, .state_type = StateType::declared},
           .type = DType::bf16,
           .tied = true},
          [&](Rank& rank, std::size_t r) {
            rank.host.land_all(r == 0 ? 256.0F : 1.0F);
            rank.reducer.reduce(BlockId(0), RoundId(0), true, 1);
            sums[r] = rank.sum(1);
          });
  CHECK(sums[0] == sums[1]);
}

TEST_CASE("an error of one rank ends the wait of the other, which learns the reason") {
  LoopbackNetwork network(2);
  on_both(network, {.tied = true}, [&](Rank& rank, std::size_t r) {
    if (r == 1) {
      rank.reducer.interrupt(std::make_exception_ptr(std::runtime_error("no power")));
      return;
    }
    auto const error = error_of([&] { rank.reducer.reduce(BlockId(0), RoundId(0), true, 1); });
    CHECK(error.code() == Errc::aborted);
    CHECK(error.message() == "rank 1 has ended the group: no power");
  });
}

}  // namespace gradient_reducer_test
