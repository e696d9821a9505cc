// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/rank_agreement.hpp>

#include <roundpipe/hosts/loopback_group.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <thread>
#include <vector>

namespace rank_agreement_test {

using namespace roundpipe;

namespace {

/// A call of \p ranks ranks, each with 2 rounds of 2 micro-batches, whose losses are their numbers
/// among those of all ranks.
struct Call {
  CallData data;
  std::vector<double> losses;

  Call(std::size_t rank, std::size_t ranks) : losses(4) {
    data.micro_batches_per_round = 2;
    data.rank = rank;
    data.deal = DealtRounds(ranks, 2);
    data.shapes.resize(losses.size());
    for (std::size_t m = 0; m < losses.size(); ++m) {
      losses[m] = static_cast<double>(data.number_of(m));
      data.losses.push_back(std::as_writable_bytes(std::span(&losses[m], 1)));
    }
  }
};

}  // namespace

TEST_CASE("ranks take the rounds of a batch in turn") {
  auto const numbers = [](std::size_t rank, std::size_t ranks) { return Call(rank, ranks).losses; };
  CHECK(numbers(0, 1) == std::vector<double>{0, 1, 2, 3});
  CHECK(numbers(0, 3) == std::vector<double>{0, 1, 6, 7});
  CHECK(numbers(1, 3) == std::vector<double>{2, 3, 8, 9});
  CHECK(numbers(2, 3) == std::vector<double>{4, 5, 10, 11});
}

TEST_CASE("ranks with unequal numbers of rounds have all losses in the order of one process") {
  LoopbackNetwork network(2);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Call call(r, 2);  // of 2 rounds
      call.data.deal = DealtRounds(std::vector<std::size_t>{1, 2});
      std::vector<double> const numbers =
          r == 0 ? std::vector<double>{0, 1} : std::vector<double>{2, 3, 4, 5};
      call.data.shapes.resize(numbers.size());
      call.losses = numbers;
      LoopbackGroup group(network, r);
      CHECK(losses_of(group, call.data) == std::vector<double>{0, 1, 2, 3, 4, 5});
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

TEST_CASE("every rank has the losses of all, in the order of one process") {
  CHECK(losses_of({}, Call(0, 1).data) == std::vector<double>{0, 1, 2, 3});
  LoopbackNetwork network(3);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      LoopbackGroup group(network, r);
      CHECK(losses_of(group, Call(r, 3).data) ==
            std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

}  // namespace rank_agreement_test
