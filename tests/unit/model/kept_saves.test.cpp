// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/model/kept_saves.hpp>

#include <roundpipe/model/byte_description.hpp>
#include <roundpipe/model/model_description.hpp>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace kept_saves_test {

using namespace roundpipe;
using test::error_of;

namespace {

/// Layers that save all or nothing.
ModelDescription model_of(std::size_t layers) {
  return describe_bytes(std::vector<LayerBytes>(layers, {256, 256, 256, 1024, 0}));
}

}  // namespace

TEST_CASE("of each layer as many micro-batches are kept as are asked for, evenly spread") {
  auto const model = model_of(6);
  for (std::size_t micro_batches = 1; micro_batches <= 12; ++micro_batches) {
    for (std::size_t count = 0; count <= micro_batches; ++count) {
      auto const set = spread_saves(model, count, micro_batches);
      for (std::size_t layer = 0; layer < 5; ++layer) {
        std::vector<std::size_t> gaps;
        std::size_t gap = 0;
        for (std::size_t m = 0; m < micro_batches; ++m) {
          ++gap;
          if (set.level(layer, m) > 0) {
            gaps.push_back(gap);
            gap = 0;
          }
        }
        CHECK(set.count(layer) == count);
        CHECK(gaps.size() == count);
        if (gaps.size() > 1) {
          auto const [least, most] = std::minmax_element(gaps.begin() + 1, gaps.end());
          CHECK(*most - *least <= 1);
        }
      }
      CHECK(set.count(5) == 0);  // the loss
    }
  }
  CHECK(error_of([&] { (void)spread_saves(model, 3, 2); }).code() == Errc::invalid_argument);
}

TEST_CASE("the host keeps different micro-batches of neighbouring layers") {
  auto const set = spread_saves(model_of(9), 4, 8);
  for (std::size_t m = 0; m < 8; ++m) {
    std::size_t layers = 0;
    for (std::size_t layer = 0; layer < 8; ++layer) {
      layers += set.level(layer, m) > 0 ? 1 : 0;
    }
    CHECK(layers >= 2);
    CHECK(layers <= 6);
  }
}

TEST_CASE("levels are those of the layers, but nothing is kept of the loss") {
  auto const model = describe(test::toy_model({.dense = 1}), {2, 3});
  auto const& dense = model.layers[1];
  REQUIRE(dense.save_levels.size() == 3);
  auto const set = keep_levels(model, {{0, 0}, {1, 2}}, 2);
  CHECK(set.bytes(1, 0) == dense.save_levels[1]);
  CHECK(set.bytes(1, 1) == dense.footprint.saved_bytes);
  for (auto const& wrong : std::vector<std::vector<std::vector<std::size_t>>>{
           {{1, 0}}, {{0, 0}, {3, 0}}, {{0, 0}, {0, 0}, {1, 0}}, {{0, 0, 0}}}) {
    CHECK(error_of([&] { (void)keep_levels(model, wrong, 2); }).code() == Errc::invalid_argument);
  }
}

TEST_CASE("what the host keeps is not recomputed: costs fall") {
  auto const model = model_of(4);
  std::vector<LayerCost> const known{
      {1, 2}, {.forward_s = 1, .backward_s = 2, .recompute_s = 1.5}, {1, 2}, {1, 2}};
  CHECK(average_costs(known, WorkingSet{})[1].recomputing_s() == 1.5);
  auto const costs = average_costs(known, keep_levels(model, {{}, {1, 0, 0, 0}, {1, 1, 1, 1}}, 4));
  CHECK(costs[0].recomputing_s() == 1);
  CHECK(costs[1].recomputing_s() == doctest::Approx(1.125));
  CHECK(costs[2].recomputing_s() == 0);
  CHECK(costs[1].forward_s == 1);
  CHECK(costs[1].backward_s == 2);

  auto const toy = describe(test::toy_model({.dense = 2}), {2, 3});
  auto partial = std::vector<LayerCost>(4, {1, 2});
  partial[1].replay_s = {0.75, 0.25};
  auto const shared = average_costs(partial, keep_levels(toy, {{}, {0, 1, 2, 1}, {1, 1, 1, 1}}, 4));
  CHECK(shared[1].recomputing_s() == doctest::Approx((0.75 + 0.25 + 0 + 0.25) / 4));
  CHECK(shared[2].recomputing_s() == 1);  // not known better
}

}  // namespace kept_saves_test
