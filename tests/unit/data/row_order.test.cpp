// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/data/row_order.hpp>

#include <roundpipe/core/error.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace row_order_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// How often each row of each source comes in \p epochs epochs from \p first on.
std::map<std::pair<std::size_t, std::uint64_t>, int> counts_of(RowOrder const& order,
                                                               std::uint64_t first,
                                                               std::uint64_t epochs = 1) {
  std::map<std::pair<std::size_t, std::uint64_t>, int> counts;
  for (std::uint64_t i = 0; i < epochs * order.rows_per_epoch(); ++i) {
    auto const place = order(first * order.rows_per_epoch() + i);
    ++counts[{place.source, place.row}];
  }
  return counts;
}

}  // namespace

TEST_CASE("an epoch reads every row once, shuffled or not") {
  for (bool const shuffles : {false, true}) {
    RowOrder const order({{5}, {1}, {30}}, 4, shuffles);
    CHECK(order.rows_per_epoch() == 36);
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      auto const counts = counts_of(order, epoch);
      CHECK(counts.size() == 36);
      for (auto const& [place, count] : counts) {
        CHECK(count == 1);
      }
    }
  }
}

TEST_CASE("without shuffling the files come one after another, in every epoch") {
  RowOrder const order({{2}, {3}}, 4, false);
  std::vector<RowPlace> const wanted{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 2}};
  for (std::uint64_t i = 0; i < 20; ++i) {
    CHECK(order(i) == wanted[static_cast<std::size_t>(i % 5)]);
  }
}

TEST_CASE("seeds and epochs have orders of their own") {
  RowOrder const order({{40}}, 1, true);
  RowOrder const other({{40}}, 2, true);
  std::size_t same_epoch = 0;
  std::size_t same_seed = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    same_epoch += order(i) == order(40 + i) ? 1 : 0;
    same_seed += order(i) == other(i) ? 1 : 0;
  }
  CHECK(same_epoch < 8);
  CHECK(same_seed < 8);
  // Files are mixed anew, too.
  RowOrder const mixed({{40}, {40}}, 1, true);
  std::size_t same_source = 0;
  for (std::uint64_t i = 0; i < 80; ++i) {
    same_source += mixed(i).source == mixed(80 + i).source ? 1 : 0;
  }
  CHECK(same_source > 20);
  CHECK(same_source < 60);
}

TEST_CASE("a weight says how often an epoch reads each row") {
  for (bool const shuffles : {false, true}) {
    RowOrder const order({{10, 3}, {10, 0.5}, {10}, {10, 1.5}}, 6, shuffles);
    CHECK(order.rows_per_epoch() == 60);
    CHECK(order.rows_per_epoch(0) == 30);
    CHECK(order.rows_per_epoch(1) == 5);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      for (auto const& [place, count] : counts_of(order, epoch)) {
        CHECK((place.first != 0 || count == 3));
        CHECK((place.first != 1 || count == 1));
        CHECK((place.first != 2 || count == 1));
        CHECK((place.first != 3 || count == 1 || count == 2));
      }
    }
    auto const both = counts_of(order, 4, 2);  // epochs 4 and 5
    CHECK(both.size() == 40);
    for (auto const& [place, count] : both) {
      CHECK(count == (place.first == 0 ? 6 : place.first == 1 ? 1 : place.first == 2 ? 2 : 3));
    }
  }
}

TEST_CASE("the rows that a fraction gives to an epoch are drawn") {
  RowOrder const order({{100, 0.5}}, 6, true);
  std::size_t of_first_half = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    of_first_half += order(i).row < 50 ? 1 : 0;
  }
  CHECK(of_first_half > 12);
  CHECK(of_first_half < 38);
}

TEST_CASE("the smallest weight gives a row to every epoch") {
  RowOrder const order({{3, 1e-9}, {5}}, 6, true);
  CHECK(order.rows_per_epoch() == 6);
  CHECK(counts_of(order, 0, 3).size() == 8);
}

TEST_CASE("sources without rows and weights that are none are refused") {
  auto const refusal = [](std::vector<RowSource> sources) {
    auto const error = error_of([&] { RowOrder(std::move(sources), 0, true); });
    CHECK(error.code() == Errc::invalid_argument);
    return error.message();
  };
  CHECK(contains(refusal({}), "needs a source"));
  CHECK(contains(refusal({{1}, {0}}), "source 1 of rows has no row"));
  CHECK(contains(refusal({{1, 0}}), "weight"));
  CHECK(contains(refusal({{1, -1}}), "weight"));
  CHECK(contains(refusal({{1, std::numeric_limits<double>::quiet_NaN()}}), "weight"));
  CHECK(contains(refusal({{1, std::numeric_limits<double>::infinity()}}), "weight"));
  CHECK(contains(refusal({{1, 1e300}}), "2^53"));
  CHECK(contains(refusal({{std::uint64_t{1} << 52}, {std::uint64_t{1} << 52}}), "2^53"));
}

}  // namespace row_order_test
