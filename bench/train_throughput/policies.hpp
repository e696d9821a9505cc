// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The policies that the options choose.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/simulated_partitioner.hpp>
#include <roundpipe/partition/uniform_partitioner.hpp>
#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/unplanned_transfers.hpp>
#include <roundpipe/runtime/policies.hpp>
#include <roundpipe/schedule/looped_bfs_schedule.hpp>
#include <train_throughput/options.hpp>

#include <utility>

namespace train_throughput {

namespace rp = roundpipe;

/// Full recomputation, the baseline: the last layer alone is fused, so the forward of every other
/// layer runs twice. `Partitioner` cuts the rest.
class RecomputeAllPartitioner {
 public:
  /// \throws roundpipe::Error as \ref roundpipe::Partitioner does.
  [[nodiscard]] static rp::Partition partition(rp::PartitionProblem problem) {
    auto const layers = problem.costs.size();
    problem.fits = [layers, fits = std::move(problem.fits)](rp::StageDirection direction,
                                                            rp::LayerRange range) {
      bool const fused = direction == rp::StageDirection::backward && range.end() == layers;
      return !(fused && range.count > 1) && (!fits || fits(direction, range));
    };
    return rp::Partitioner{}.partition(problem);
  }
};
static_assert(rp::PartitionPolicy<RecomputeAllPartitioner>);

inline rp::Policies policies_of(Options const& o) {
  rp::Policies policies;
  policies.group = o.group;
  if (o.schedule == "looped-bfs") {
    policies.schedule = rp::LoopedBfsSchedule{};
  }
  if (o.transfers == "unplanned") {
    policies.transfers = rp::UnplannedTransfers{};
  }
  auto const staleness = o.sync ? 0 : 1;
  policies.protocol = rp::LayerEventProtocol{staleness};
  if (o.protocol == "blocking") {
    policies.protocol = rp::BlockingProtocol{staleness};
  }
  if (o.partition == "uniform") {
    policies.partitioner = rp::UniformPartitioner{};
  } else if (o.partition == "simulation") {
    policies.partitioner = rp::SimulatedPartitioner{};
  } else if (o.partition == "recompute-all") {
    policies.partitioner = RecomputeAllPartitioner{};
  }
  return policies;
}

}  // namespace train_throughput
