// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The stages of a partition, laid out in the memory of a device that runs any of them.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/memory/stage_region.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace roundpipe {

/// Stages and where they lie.
struct StagePlan {
  Partition partition;
  std::vector<StageLayout> train;     ///< Forward stages, then backward stages.
  std::vector<StageLayout> evaluate;  ///< Forward stages, then the fused one without backward.
  /// What devices run of a training call and of an evaluation, whose stages count on.
  std::vector<DeviceTurns> turns;
  DeviceMemoryPlan memory;
  ResidentBoundaries resident;
  /// Boundaries that the next stage's device gets from the one that makes them, while the host
  /// holds them for other stages.
  ResidentBoundaries sent{};
};

/// A plan that fits the devices.
struct FoundPlan {
  /// Of a plan that was taken because the host has room for it, or lacks least.
  static constexpr double unknown = std::numeric_limits<double>::infinity();

  StagePlan plan;
  /// Of an iteration, by forecast; 0 without one. A plan that loses may have a bound in its place,
  /// and take longer.
  double seconds = 0;
};

/// Plans the memory of a device that runs the stages of \p plan with other entries.
[[nodiscard]] DeviceMemoryPlan memory_with(StagePlan const& plan, Buffering buffering);

/// What each device holds with \p plan: the plan's memory, and \p held bytes besides, if any.
[[nodiscard]] std::vector<LedgerLine> device_ledger(StagePlan const& plan, Bytes held);

namespace detail {

/// What each of \p devices runs of a graph's \p slots, which are in issue order. Stages are
/// numbered from \p first_stage on.
[[nodiscard]] std::vector<DeviceTurns> turns_of(std::span<Slot const> slots,
                                                std::size_t devices,
                                                std::size_t first_stage = 0);

/// The blocks of which \p plan, whose turns are known, would upload less if devices kept them. Last
/// those that a device reads in the first turn of a call: they would go up late, when the call
/// before is done with them. Else first those that spare most uploads.
[[nodiscard]] std::vector<BlockId> keepable_blocks(StagePlan const& plan,
                                                   ParameterBlocks const& blocks);

/// \p plan, or one of the same stages whose devices keep as many of \ref keepable_blocks as there
/// is room for, the first ones. \p lay_out makes plans that keep given blocks; none: there is no
/// room.
[[nodiscard]] StagePlan keep_blocks(
    StagePlan const& plan,
    ParameterBlocks const& blocks,
    std::function<std::optional<StagePlan>(ResidentBlocks)> const& lay_out);

}  // namespace detail

/// Lays out the stages of \p partition, and plans the memory of a device that runs them as \p turns
/// say, or in any order, and keep \p resident blocks; all of them, where there is one stage and one
/// entry of parameters.
/// \throws Error (invalid_argument) as \ref lay_out_region.
[[nodiscard]] StagePlan lay_out_stages(ModelDescription const& model,
                                       ParameterBlocks const& blocks,
                                       Partition partition,
                                       Buffering buffering,
                                       WorkingSet working_set = {},
                                       std::vector<DeviceTurns> turns = {},
                                       ResidentBlocks resident = {});

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/stage_plan.ipp>
#endif
