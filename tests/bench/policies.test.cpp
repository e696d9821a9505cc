// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <train_throughput/policies.hpp>

#include <common/ranks.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <train_throughput/options.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <thread>
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

TEST_CASE("ranks share a batch, and take GPUs one behind another") {
  roundpipe::LoopbackNetwork network(2);
  std::array<train_throughput::Options, 2> options;
  auto const run = [&](std::size_t rank) {
    LoopbackGroup group(network, rank);
    auto& o = options[rank];
    o.batch = 24;
    o.devices = 2;
    o.json = "-";
    train_throughput::join(o, group, rank);
    o.micro_batches_per_round = 3;
    o.rounds = 2;
    CHECK(o.rows() == 2);
    o.cost_file = "costs.json";
    CHECK_THROWS_AS(train_throughput::join(o, group, rank), Error);
    o.cost_file = "";
    o.batch = 6;  // of one rank alone
    CHECK_THROWS_AS(train_throughput::join(o, group, rank), Error);
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  CHECK(options[0].first_device == 0);
  CHECK(options[1].first_device == 2);
  CHECK(options[0].json == "-");
  CHECK(options[1].json.empty());
}

TEST_CASE("a rank takes the GPUs that its launcher shows it alone") {
  using examples::first_rank_device;
  CHECK(first_rank_device(3, 2, nullptr) == 6);
  CHECK(first_rank_device(3, 2, "6,7") == 0);
  CHECK(first_rank_device(1, 2, "0,1,2,3") == 2);
  CHECK(first_rank_device(1, 1, "5") == 0);
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
