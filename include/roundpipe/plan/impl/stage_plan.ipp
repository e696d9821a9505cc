// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
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
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::vector<LedgerLine> device_ledger(StagePlan const& plan, Bytes held) {
  auto ledger = plan.memory.ledger();
  if (held > 0) {
    ledger.push_back({LedgerLine::Space::device, "context, modules, libraries, page tables", held});
  }
  return ledger;
}

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

ROUNDPIPE_INLINE std::vector<BlockId> keepable_blocks(StagePlan const& plan,
                                                      ParameterBlocks const& blocks) {
  struct Uses {
    bool is_first = false;
    std::size_t spared = 0;  // uploads
  };
  std::vector<Uses> uses(blocks.blocks.size());
  for (auto const& part : plan.turns) {
    std::set<BlockId> there;
    for (auto turn = part.begin(); turn != part.end(); ++turn) {
      for (auto const k : *turn) {
        if (k >= plan.train.size()) {
          continue;  // of an evaluation, where a device seldom reads a block twice
        }
        for (auto const& place : plan.train[k].uses) {
          if (place.holds()) {
            auto const block = blocks.use(place.use).block;
            auto& of_block = uses[block.index()];
            of_block.is_first = of_block.is_first || turn == part.begin();
            of_block.spared += there.insert(block).second ? 0 : 1;
          }
        }
      }
    }
  }
  std::vector<BlockId> found;
  for (std::size_t b = 0; b < uses.size(); ++b) {
    if (uses[b].spared > 0) {
      found.emplace_back(b);
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](BlockId a, BlockId b) {
    auto const& [a_is_first, a_spared] = uses[a.index()];
    auto const& [b_is_first, b_spared] = uses[b.index()];
    return a_is_first != b_is_first ? b_is_first : a_spared > b_spared;
  });
  return found;
}

ROUNDPIPE_INLINE StagePlan
keep_blocks(StagePlan const& plan,
            ParameterBlocks const& blocks,
            std::function<std::optional<StagePlan>(ResidentBlocks)> const& lay_out) {
  auto const keepable = keepable_blocks(plan, blocks);
  auto best = plan;
  // More blocks take more room, or nearly so, for stages then need less.
  std::size_t most = 0;
  for (auto end = keepable.size() + 1, next = end - 1; end - most > 1; next = (most + end) / 2) {
    auto const last = keepable.begin() + static_cast<std::ptrdiff_t>(next);
    auto kept = lay_out({keepable.begin(), last});
    (kept ? most : end) = next;
    if (kept) {
      best = *std::move(kept);
    }
  }
  return best;
}

}  // namespace detail

ROUNDPIPE_INLINE DeviceMemoryPlan memory_with(StagePlan const& plan, Buffering buffering) {
  auto all = plan.train;
  all.insert(all.end(), plan.evaluate.begin(), plan.evaluate.end());
  auto memory = plan_device_memory(all, buffering, plan.turns);
  for (auto const& [block, place] : plan.memory.resident_parameters) {
    memory.add_resident(block, place.bytes);
  }
  return memory;
}

ROUNDPIPE_INLINE StagePlan lay_out_stages(ModelDescription const& model,
                                          ParameterBlocks const& blocks,
                                          Partition partition,
                                          Buffering buffering,
                                          WorkingSet working_set,
                                          std::vector<DeviceTurns> turns,
                                          ResidentBlocks resident) {
  StagePlan plan;
  plan.turns = std::move(turns);
  plan.partition = std::move(partition);
  auto const& backward = plan.partition.backward;
  auto const is_checkpoint = [&](std::size_t boundary) {
    return std::any_of(backward.begin(), backward.end(), [&](auto const& range) {
      return range.first == boundary + 1;
    });
  };
  if (plan.partition.size() == 1 && buffering.parameters == 1) {  // what would take their place?
    for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
      resident.insert(BlockId(b));
    }
  }
  auto const lay_out = [&](StageKind kind, LayerRange range, auto const& is_kept) {
    return lay_out_stage(model, blocks, kind, range, is_kept, working_set, resident);
  };
  for (auto const& [kind, range] : stages_of(plan.partition)) {
    plan.train.push_back(lay_out(kind, range, is_checkpoint));
    if (kind == StageKind::forward) {
      plan.evaluate.push_back(plan.train.back());
      plan.evaluate.back().working_set = working_set.without_saves();
      auto& kept = plan.evaluate.back().kept;  // the next stage needs the last one alone
      kept.erase(kept.begin(), kept.end() - std::min<std::ptrdiff_t>(std::ssize(kept), 1));
    }
  }
  plan.evaluate.push_back(lay_out(StageKind::evaluate, backward.front(), [](std::size_t) {
    return false;  // its boundaries go nowhere
  }));
  for (auto const block : resident) {
    plan.memory.add_resident(block, blocks.blocks[block.index()].master.bytes());
  }
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
