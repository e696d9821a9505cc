// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Stages that are streamed to devices of limited memory, of which plain figures are known.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/layer_bytes.hpp>
#include <roundpipe/partition/simulated_partitioner.hpp>
#include <roundpipe/simulate/bound_memory.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

namespace plan_pipeline {

/// Stages, rounds, and the memory of a device that runs any of them.
struct BytePlan {
  roundpipe::Partition partition;
  std::size_t micro_batches_per_round = 0;
  roundpipe::Buffering buffering;
  roundpipe::DeviceUse bytes;
};

/// Looks for stages and rounds of a problem with its `fits` set.
using SearchStages = std::function<roundpipe::RoundPartition(roundpipe::PartitionProblem const&)>;

/// Where stages come from.
struct StageSource {
  std::optional<roundpipe::Partition> given;  ///< This one, whatever it needs; or searched for.
  std::size_t micro_batches_per_round = 0;    ///< Of what is not found by \c good.
  SearchStages quick;  ///< Finds what fits into memory: any partition into small enough stages.
  SearchStages good;   ///< Looks for better ones with stages as small.
};

/// Lets \p source look for stages that fit into \p budget bytes, with as much double buffering as
/// that leaves.
/// \throws roundpipe::Error (over_budget) when nothing fits: which stage needs most, its bytes, and
/// the least budget that would do.
[[nodiscard]] BytePlan plan_within(roundpipe::PartitionProblem const& problem,
                                   std::span<roundpipe::LayerBytes const> layers,
                                   std::optional<roundpipe::Bytes> budget,
                                   StageSource const& source);

}  // namespace plan_pipeline
