// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/stage_moves.hpp>

#include <roundpipe/partition/partition_check.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace stage_moves_test {

namespace {

using namespace roundpipe;
using detail::StageMoves;
using detail::StageSizes;
using enum StageMoves::Verdict;

/// The difference between the sizes of two partitions.
std::size_t distance(StageSizes const& a, StageSizes const& b) {
  auto const side = [](std::vector<std::size_t> const& x, std::vector<std::size_t> const& y) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
      auto const p = i < x.size() ? x[i] : 0;
      auto const q = i < y.size() ? y[i] : 0;
      sum += p > q ? p - q : q - p;
    }
    return sum;
  };
  return side(a.forward, b.forward) + side(a.backward, b.backward);
}

}  // namespace

TEST_CASE("sizes and partitions convert to each other") {
  Partition const partition{{{0, 2}, {2, 1}}, {{3, 2}, {1, 2}, {0, 1}}};
  auto const sizes = StageSizes::of(partition);
  CHECK(sizes.forward == std::vector<std::size_t>{2, 1});
  CHECK(sizes.backward == std::vector<std::size_t>{2, 2, 1});
  CHECK(sizes.partition(5) == partition);
}

TEST_CASE("every move is a partition of the model, and only improvements are kept") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20; ++i) {
    StageSizes const start{{3, 4, 2}, {2, 4, 3, 2}};
    auto best = random() % 1000;
    std::vector<StageSizes> kept{start};
    StageMoves moves(start, [&](StageSizes const& sizes) {
      CHECK(covers(sizes.partition(11), 11));
      auto const value = random() % 1000;
      if (value >= best) {
        return no_better;
      }
      best = value;
      kept.push_back(sizes);
      return better;
    });
    auto const end = moves.run();
    CHECK(distance(end, kept.back()) == 0);
  }
}

TEST_CASE("moves lead from one partition to another") {
  StageSizes const goal{{1, 2, 3, 4}, {2, 5, 3, 1, 1}};
  StageSizes const start{{11}, {1, 11}};
  auto least = distance(start, goal);
  StageMoves moves(start, [&](StageSizes const& sizes) {
    auto const now = distance(sizes, goal);
    if (now >= least) {
      return no_better;
    }
    least = now;
    return better;
  });
  auto const end = moves.run();
  CHECK(end.backward[0] == 2);
  CHECK(distance(end, goal) < 4);
}

TEST_CASE("the search ends when the judge says stop") {
  int tried = 0;
  StageMoves moves({{5, 5}, {5, 5, 5}},
                   [&](StageSizes const&) { return ++tried < 4 ? no_better : stop; });
  static_cast<void>(moves.run());
  CHECK(tried == 4);
}

}  // namespace stage_moves_test
