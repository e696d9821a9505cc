// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/model/offloaded_saves.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace offloaded_saves_test {

using namespace roundpipe;

TEST_CASE("by default nothing is offloaded") {
  OffloadedSaves const none;
  CHECK_FALSE(none.any(0));
  CHECK_FALSE(none.all(0));
  CHECK_FALSE(none.has(0, 0));
  CHECK(none.share(3) == 0);
}

TEST_CASE("of each layer as many micro-batches are offloaded as are asked for, evenly spread") {
  for (std::size_t micro_batches = 1; micro_batches <= 12; ++micro_batches) {
    for (std::size_t count = 0; count <= micro_batches; ++count) {
      OffloadedSaves const offloaded(std::vector<std::size_t>(5, count), micro_batches);
      for (std::size_t layer = 0; layer < 5; ++layer) {
        std::size_t found = 0;
        std::vector<std::size_t> gaps;
        std::size_t gap = 0;
        for (std::size_t m = 0; m < micro_batches; ++m) {
          ++gap;
          if (offloaded.has(layer, m)) {
            if (found++ > 0) {
              gaps.push_back(gap);
            }
            gap = 0;
          }
        }
        CHECK(found == count);
        if (!gaps.empty()) {
          CHECK(std::ranges::max(gaps) - std::ranges::min(gaps) <= 1);
        }
        CHECK(offloaded.all(layer) == (count == micro_batches && count > 0));
        CHECK(offloaded.any(layer) == (count > 0));
      }
      CHECK_FALSE(offloaded.any(5));
    }
  }
}

TEST_CASE("neighbouring layers offload different micro-batches") {
  OffloadedSaves const offloaded(std::vector<std::size_t>(8, 4), 8);
  for (std::size_t m = 0; m < 8; ++m) {
    std::size_t layers = 0;
    for (std::size_t layer = 0; layer < 8; ++layer) {
      layers += offloaded.has(layer, m) ? 1 : 0;
    }
    CHECK(layers >= 2);
    CHECK(layers <= 6);
  }
}

TEST_CASE("a round has to have the micro-batches that it offloads") {
  auto const error = test::error_of([] { return OffloadedSaves({1, 3}, 2).count(0); });
  CHECK(error.code() == Errc::invalid_argument);
}

TEST_CASE("what is offloaded is not recomputed: costs fall by its share") {
  OffloadedSaves const offloaded({0, 1, 4}, 4);
  auto const costs = average_costs(
      {{1, 2}, {.forward_s = 1, .backward_s = 2, .recompute_s = 1.5}, {1, 2}}, offloaded);
  CHECK(costs[0].recomputing_s() == 1);
  CHECK(costs[1].recomputing_s() == doctest::Approx(1.125));
  CHECK(costs[2].recomputing_s() == 0);
  CHECK(costs[1].forward_s == 1);
  CHECK(costs[1].backward_s == 2);
}

}  // namespace offloaded_saves_test
