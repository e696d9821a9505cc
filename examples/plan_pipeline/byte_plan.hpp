// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Stages that are streamed to devices of limited memory, planned from plain figures.

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

/// Stages, rounds, and the memory of a device that can run any of the stages.
struct BytePlan {
  roundpipe::Partition partition;
  std::size_t micro_batches_per_round = 0;
  roundpipe::Buffering buffering;
  roundpipe::DeviceUse bytes;
};

/// Looks for stages and rounds of a problem with its `fits` set.
using SearchStages = std::function<roundpipe::RoundPartition(roundpipe::PartitionProblem const&)>;

/// The sources of stages.
struct StageSource {
  std::optional<roundpipe::Partition> given;  ///< These stages, whatever they need; empty: search.
  std::size_t micro_batches_per_round = 0;    ///< For stages that \c good did not find.
  SearchStages quick;  ///< Finds what fits into memory: any partition into small enough stages.
  SearchStages good;   ///< Looks for better stages that are as small.
};

/// Lets \p source look for stages that fit into \p budget bytes, with as much double buffering as
/// the budget leaves room for.
/// \throws roundpipe::Error (over_budget) if nothing fits. The error names the stage that needs
/// most, its bytes, and the least budget that would do.
[[nodiscard]] BytePlan plan_within(roundpipe::PartitionProblem const& problem,
                                   std::span<roundpipe::LayerBytes const> layers,
                                   std::optional<roundpipe::Bytes> budget,
                                   StageSource const& source);

}  // namespace plan_pipeline
