// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/memory/stage_region.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::vector<DeviceTurns> turns_of(std::span<Slot const> slots,
                                                   std::size_t devices,
                                                   std::size_t first_stage) {
  std::vector<DeviceTurns> parts(devices);
  for (std::size_t s = 0; s < slots.size();) {
    auto const turn = slots.subspan(s, slots[s].partner.valid() ? 2 : 1);
    auto& stages = parts[slots[s].device.index()].emplace_back();
    for (auto const& slot : turn) {
      stages.push_back(first_stage + slot.stage.index());
    }
    s += turn.size();
  }
  return parts;
}

}  // namespace detail

ROUNDPIPE_INLINE DeviceMemoryPlan memory_with(StagePlan const& plan, Buffering buffering) {
  auto all = plan.train;
  all.insert(all.end(), plan.evaluate.begin(), plan.evaluate.end());
  return plan_device_memory(all, buffering, plan.turns);
}

ROUNDPIPE_INLINE StagePlan lay_out_stages(ModelDescription const& model,
                                          ParameterBlocks const& blocks,
                                          Partition partition,
                                          Buffering buffering,
                                          WorkingSet working_set,
                                          std::vector<DeviceTurns> turns) {
  StagePlan plan;
  plan.turns = std::move(turns);
  plan.partition = std::move(partition);
  auto const& backward = plan.partition.backward;
  auto const is_checkpoint = [&](std::size_t boundary) {
    return std::any_of(backward.begin(), backward.end(), [&](auto const& range) {
      return range.first == boundary + 1;
    });
  };
  for (auto const& [kind, range] : stages_of(plan.partition)) {
    plan.train.push_back(lay_out_stage(model, blocks, kind, range, is_checkpoint, working_set));
    if (kind == StageKind::forward) {
      plan.evaluate.push_back(plan.train.back());
      plan.evaluate.back().working_set = working_set.without_saves();
      auto& kept = plan.evaluate.back().kept;  // the next stage needs the last one alone
      kept.erase(kept.begin(), kept.end() - std::min<std::ptrdiff_t>(std::ssize(kept), 1));
    }
  }
  plan.evaluate.push_back(
      lay_out_stage(model, blocks, StageKind::evaluate, backward.front(), [](std::size_t) {
        return false;  // its boundaries go nowhere
      }));
  plan.memory = memory_with(plan, buffering);
  auto place = plan.memory.places.begin();
  for (auto* const stages : {&plan.train, &plan.evaluate}) {
    for (auto& stage : *stages) {
      stage.region = *place++;
    }
  }
  return plan;
}

}  // namespace roundpipe
