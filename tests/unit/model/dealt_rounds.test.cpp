// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/model/dealt_rounds.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace dealt_rounds_test {

using namespace roundpipe;

namespace {

std::vector<std::size_t> dealt(std::size_t rounds, std::vector<double> const& speeds) {
  auto const deal = deal_rounds(rounds, speeds);
  std::vector<std::size_t> of_ranks;
  for (std::size_t r = 0; r < deal.ranks(); ++r) {
    of_ranks.push_back(deal.of(r));
  }
  return of_ranks;
}

}  // namespace

TEST_CASE("ranks take rounds in turn, as far as they have some") {
  DealtRounds const deal({3, 1, 2});
  CHECK(deal.most() == 3);
  std::vector<std::size_t> numbers;
  for (std::size_t round = 0; round < deal.most(); ++round) {
    std::size_t ranks = 0;
    for (std::size_t rank = 0; rank < deal.ranks(); ++rank) {
      if (deal.has(rank, round)) {
        numbers.push_back(deal.number(rank, round));
        ++ranks;
      }
    }
    CHECK(deal.ranks_with(round) == ranks);
  }
  CHECK(numbers == std::vector<std::size_t>{0, 1, 2, 3, 4, 5});
  CHECK(DealtRounds(3, 2).number(1, 1) == 4);
  CHECK(DealtRounds().number(0, 7) == 7);
}

TEST_CASE("rounds are dealt so that the last rank is done early, and each has one") {
  CHECK(dealt(6, {1, 1, 1}) == std::vector<std::size_t>{2, 2, 2});
  CHECK(dealt(7, {1, 1, 1}) == std::vector<std::size_t>{3, 2, 2});
  CHECK(dealt(8, {1, 3}) == std::vector<std::size_t>{2, 6});
  CHECK(dealt(12, {3e9, 2e9, 1e9}) == std::vector<std::size_t>{6, 4, 2});
  CHECK(dealt(3, {1, 1000, 1}) == std::vector<std::size_t>{1, 1, 1});
}

}  // namespace dealt_rounds_test
