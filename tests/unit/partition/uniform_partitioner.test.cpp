// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/partition/uniform_partitioner.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace uniform_partitioner_test {

namespace {

using namespace roundpipe;

std::vector<LayerCost> equal_layers(std::size_t count) {
  return std::vector<LayerCost>(count, LayerCost{1, 2});
}

/// The stages of \p size layers by definition: backward ones from the last layer on, forward ones
/// from the first.
Partition stages_of(std::size_t layers, std::size_t size) {
  Partition partition;
  auto left = layers;
  while (left > 0) {
    auto const count = std::min(size, left);
    left -= count;
    partition.backward.push_back({left, count});
  }
  auto const fused = partition.backward.front().first;
  for (std::size_t first = 0; first < fused; first += size) {
    partition.forward.push_back({first, std::min(size, fused - first)});
  }
  return partition;
}

}  // namespace

TEST_CASE("stages have the same number of layers, and the last ones take the rest") {
  auto const partition = UniformPartitioner{}.partition(
      {.costs = equal_layers(8),
       .devices = 4,
       .micro_batches_per_call = 4,
       .fits = [](StageDirection, LayerRange range) { return range.count <= 3; }});
  auto const size = partition.backward.front().count;
  CHECK(partition == stages_of(8, size));
  CHECK(stages_of(8, 3) == Partition{{{0, 3}, {3, 2}}, {{5, 3}, {2, 3}, {0, 2}}});
}

TEST_CASE("of all sizes that fit, the one with the smallest objective wins") {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    auto const draw = [&](std::size_t low, std::size_t high) {
      return std::uniform_int_distribution<std::size_t>(low, high)(random);
    };
    PartitionProblem problem;
    auto const layers = draw(1, 12);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      problem.costs.push_back({static_cast<double>(draw(1, 9)), static_cast<double>(draw(1, 18))});
    }
    problem.devices = draw(1, 5);
    problem.micro_batches_per_call = draw(1, 8);
    auto const forward = draw(1, 12);
    auto const backward = draw(1, 12);
    problem.fits = [=](StageDirection direction, LayerRange range) {
      return range.count <= (direction == StageDirection::forward ? forward : backward);
    };
    auto const partition = UniformPartitioner{}.partition(problem);
    auto const found = objective(problem, partition);
    bool is_one = false;
    for (std::size_t size = 1; size <= layers; ++size) {
      auto const other = stages_of(layers, size);
      auto const fits_all =
          std::ranges::all_of(other.forward, [&](auto range) { return range.count <= forward; }) &&
          std::ranges::all_of(other.backward, [&](auto range) { return range.count <= backward; });
      is_one = is_one || (fits_all && partition == other);
      CHECK((!fits_all || found <= objective(problem, other)));
    }
    CHECK(is_one);
    CHECK(objective(problem, Partitioner{}.partition(problem)) <= found);  // the better partitioner
  }
}

TEST_CASE("one device gets one stage") {
  auto const partition = UniformPartitioner{}.partition(
      {.costs = equal_layers(5), .devices = 1, .micro_batches_per_call = 3, .fits = {}});
  CHECK(partition == Partition{{}, {{0, 5}}});
}

TEST_CASE("a heavy head counts as one layer like any other") {
  auto costs = equal_layers(8);
  costs.back() = {8, 16};
  auto const partition = UniformPartitioner{}.partition(
      {.costs = costs, .devices = 4, .micro_batches_per_call = 16, .fits = {}});
  auto const size = partition.backward.front().count;
  CHECK(partition == stages_of(8, size));
}

TEST_CASE("an error says so when no stages of equally many layers fit") {
  PartitionProblem const problem{
      .costs = equal_layers(4),
      .devices = 2,
      .micro_batches_per_call = 2,
      .fits = [](StageDirection, LayerRange range) { return !range.contains(2); }};
  CHECK(test::error_of([&] { (void)UniformPartitioner{}.partition(problem); }).code() ==
        Errc::over_budget);
}

}  // namespace uniform_partitioner_test
