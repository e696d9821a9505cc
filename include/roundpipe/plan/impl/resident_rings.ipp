// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/resident_rings.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::vector<BoundaryLife> boundary_lives(std::span<StageLayout const> stages,
                                                          std::span<Slot const> slots,
                                                          std::size_t micro_batches) {
  std::vector<BoundaryLife> lives;
  std::map<std::pair<MadeBoundary, RoundId>, std::size_t> known;
  std::size_t now = 0;
  auto const run = [&](Slot const& slot, std::size_t m) {
    auto const& stage = stages[slot.stage.index()];
    for (auto const& pass : stage.passes(slot.round, m)) {
      ++now;
      for (auto const& access : boundary_accesses(stage, pass)) {
        MadeBoundary const made{access.kind, access.layer, m};
        if (access.writes) {
          known[{made, slot.round}] = lives.size();
          lives.push_back({.made = made,
                           .round = slot.round,
                           .device = slot.device,
                           .from = now,
                           .until = now,
                           .bytes = access.place.bytes});
        } else {
          auto& life = lives[known.at({made, slot.round})];
          life.until = now;
          life.is_read = true;
          life.one_device = life.one_device && slot.device == life.device;
        }
      }
    }
  };
  for (std::size_t s = 0; s < slots.size();) {
    auto const turn = slots.subspan(s, slots[s].partner.valid() ? 2 : 1);
    for (std::size_t m = 0; m < micro_batches; ++m) {
      for (auto const& slot : turn) {
        run(slot, m);
      }
    }
    s += turn.size();
  }
  return lives;
}

}  // namespace detail

ROUNDPIPE_INLINE ResidentRings::ResidentRings(std::span<StageLayout const> stages,
                                              std::span<Slot const> slots,
                                              std::size_t micro_batches,
                                              ResidentBoundaries const& resident) {
  if (resident.empty()) {
    return;
  }
  struct Pool {
    std::set<std::size_t> free;
    std::set<std::pair<std::size_t, std::size_t>> used;  // last reader, ring
    std::size_t count = 0;
  };
  std::map<std::pair<DeviceId, BufferKind>, Pool> pools;
  for (auto const& life : detail::boundary_lives(stages, slots, micro_batches)) {
    if (!resident.contains(life.made)) {
      continue;
    }
    if (!life.one_device) {
      throw Error(Errc::unsupported,
                  "the plan lets the boundary behind layer " + std::to_string(life.made.layer) +
                      " stay on a device, and the schedule reads it on another one");
    }
    auto& pool = pools[{life.device, life.made.kind}];
    while (!pool.used.empty() && pool.used.begin()->first < life.from) {
      pool.free.insert(pool.used.begin()->second);
      pool.used.erase(pool.used.begin());
    }
    if (pool.free.empty()) {
      pool.free.insert(pool.count++);
    }
    auto const ring = *pool.free.begin();
    pool.free.erase(pool.free.begin());
    pool.used.emplace(life.until, ring);
    rings_[{life.made, life.round}] = ring;
    auto& size = sizes_.of(life.made.kind);
    size.count = std::max(size.count, pool.count);
    size.entry_bytes = std::max(size.entry_bytes, align_up(life.bytes));
  }
}

ROUNDPIPE_INLINE std::optional<std::size_t> ResidentRings::ring(MadeBoundary const& made,
                                                                RoundId round) const {
  auto const found = rings_.find({made, round});
  return found == rings_.end() ? std::nullopt : std::optional(found->second);
}

namespace detail {

/// Those of \p lives that can stay in all rounds, by how long they live.
[[nodiscard]] ROUNDPIPE_INLINE std::map<MadeBoundary, std::size_t> can_stay(
    std::vector<BoundaryLife> const& lives) {
  std::map<MadeBoundary, std::size_t> longest;
  std::set<MadeBoundary> leave;
  for (auto const& life : lives) {
    auto& length = longest[life.made];
    length = std::max(length, life.until - life.from);
    if (!life.is_read || !life.one_device || life.bytes == 0) {
      leave.insert(life.made);
    }
  }
  for (auto const& made : leave) {
    longest.erase(made);
  }
  return longest;
}

/// Boundaries that can stay, first those that are read soonest: the same room serves more of them.
[[nodiscard]] ROUNDPIPE_INLINE std::vector<MadeBoundary> resident_candidates(
    std::vector<BoundaryLife> const& training, std::vector<BoundaryLife> const& evaluating) {
  auto const longest = can_stay(training);
  auto const in_evaluations = can_stay(evaluating);
  std::set<MadeBoundary> evaluated;
  for (auto const& life : evaluating) {
    evaluated.insert(life.made);
  }
  std::vector<std::pair<std::size_t, MadeBoundary>> found;
  for (auto const& [made, length] : longest) {
    if (in_evaluations.contains(made) || !evaluated.contains(made)) {
      found.emplace_back(length, made);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<MadeBoundary> result;
  for (auto const& each : found) {
    result.push_back(each.second);
  }
  return result;
}

ROUNDPIPE_INLINE FoundPlan keep_resident(FoundPlan found,
                                         std::span<Slot const> slots,
                                         std::span<Slot const> evaluating,
                                         PlanOptions const& options,
                                         PlanForecast const& forecast) {
  auto const& plan = found.plan;
  auto const micro_batches = options.micro_batches_per_round;
  auto const candidates =
      resident_candidates(boundary_lives(plan.train, slots, micro_batches),
                          boundary_lives(plan.evaluate, evaluating, micro_batches));
  auto const with = [&](std::size_t count) {
    auto other = plan;
    other.resident = {candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count)};
    ResidentRings const train(plan.train, slots, micro_batches, other.resident);
    ResidentRings const evaluate(plan.evaluate, evaluating, micro_batches, other.resident);
    for (auto const kind : ResidentLayout::kinds) {
      auto size = train.size(kind);
      size.count = std::max(size.count, evaluate.size(kind).count);
      size.entry_bytes = std::max(size.entry_bytes, evaluate.size(kind).entry_bytes);
      other.memory.add_resident(kind, size);
    }
    return other;
  };
  // More boundaries take more room, so bisection finds how many of the first there is room for.
  std::size_t most = 0;
  for (auto end = candidates.size() + 1; end - most > 1;) {
    auto const middle = most + (end - most) / 2;
    auto const other = with(middle);
    auto const fits = other.memory.bytes + options.held_by(other) <= options.device_memory;
    (fits ? most : end) = middle;
  }
  if (most == 0) {
    return found;
  }
  FoundPlan kept{with(most), 0};
  kept.seconds = forecast ? forecast(kept.plan) : 0;
  return options.resident_boundaries || kept.seconds <= found.seconds ? kept : found;
}

}  // namespace detail

}  // namespace roundpipe
