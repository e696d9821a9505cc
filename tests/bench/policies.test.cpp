// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <train_throughput/policies.hpp>

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <train_throughput/options.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace policies_test {
namespace {

using namespace roundpipe;
using train_throughput::RecomputeAllPartitioner;

PartitionProblem problem_of(std::size_t layers) {
  PartitionProblem problem;
  problem.costs.assign(layers, LayerCost{1, 2});
  problem.micro_batches_per_call = 4;
  return problem;
}

TEST_CASE("full recomputation fuses the last layer alone") {
  auto const partition = RecomputeAllPartitioner::partition(problem_of(6));
  CHECK(partition.backward.front() == LayerRange{5, 1});
  std::size_t forward = 0;
  for (auto const& stage : partition.forward) {
    forward += stage.count;
  }
  CHECK(forward == 5);
  // Without the rule one fused stage would be best.
  CHECK(Partitioner{}.partition(problem_of(6)).forward.empty());
}

TEST_CASE("full recomputation keeps to what fits") {
  auto problem = problem_of(6);
  problem.fits = [](StageDirection, LayerRange range) { return range.count <= 2; };
  auto const partition = RecomputeAllPartitioner::partition(problem);
  for (auto const& stage : partition.backward) {
    CHECK(stage.count <= 2);
  }
  problem.fits = [](StageDirection, LayerRange) { return false; };
  CHECK_THROWS_AS((void)RecomputeAllPartitioner::partition(problem), Error);
}

TEST_CASE("full recomputation goes with checkpoints between stages and without saves") {
  train_throughput::Options options;
  options.partition = "recompute-all";
  train_throughput::complete(options);
  CHECK(options.checkpoints == "stages");
  CHECK(options.offload == 0);
  options.offload = 1;
  options.micro_batches_per_round = 2;
  CHECK_THROWS_AS(train_throughput::complete(options), Error);
}

}  // namespace
}  // namespace policies_test
