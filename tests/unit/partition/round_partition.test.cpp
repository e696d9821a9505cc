// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/round_partition.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace round_partition_test {

using namespace roundpipe;

TEST_CASE(
    "rounds are the divisors that give every device a micro-batch, unless the problem lists them") {
  PartitionProblem problem{
      .costs = std::vector<LayerCost>(3, {1, 2}), .devices = 8, .micro_batches_per_call = 48};
  CHECK(round_sizes(problem) == std::vector<std::size_t>{8, 12, 16, 24, 48});
  problem.devices = 48;
  CHECK(round_sizes(problem) == std::vector<std::size_t>{48});
  problem.devices = 100;  // no divisor is that large
  CHECK(round_sizes(problem) == std::vector<std::size_t>{48});
  problem.micro_batches_per_round = {4, 6};
  CHECK(round_sizes(problem) == std::vector<std::size_t>{4, 6});
  for (std::size_t const size : {0, 7, 96}) {
    problem.micro_batches_per_round = {6, size};
    CHECK(test::error_of([&] { (void)round_sizes(problem); }).code() == Errc::invalid_argument);
  }
}

TEST_CASE("a partition comes with the rounds in which a call is shortest") {
  PartitionProblem problem{
      .costs = std::vector<LayerCost>(12, {1, 2}), .devices = 4, .micro_batches_per_call = 24};
  SlotSimulationOptions const options{.asynchronous = false, .communication_s = 0.1};
  Partition const partition{{{0, 5}, {5, 4}}, {{9, 3}, {4, 5}, {0, 4}}};
  auto const found = best_rounds(problem, partition, options);
  CHECK(found.partition == partition);
  SlotSimulation simulation(problem.costs, 4, 24, options);
  CHECK(found.call.seconds ==
        simulation.simulate(partition, found.micro_batches_per_round).seconds);
  for (auto const round : round_sizes(problem)) {
    CHECK(found.call.seconds <= simulation.simulate(partition, round).seconds);
  }
  problem.micro_batches_per_round = {2};
  CHECK(best_rounds(problem, partition).micro_batches_per_round == 2);
  problem.micro_batches_per_round = {5};
  CHECK(test::error_of([&] { (void)best_rounds(problem, partition); }).code() ==
        Errc::invalid_argument);
}

}  // namespace round_partition_test
