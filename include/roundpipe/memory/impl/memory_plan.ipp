// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE Bytes total_bytes(std::span<LedgerLine const> ledger, LedgerLine::Space space) {
  Bytes sum = 0;
  for (auto const& line : ledger) {
    sum += line.space == space ? line.bytes : 0;
  }
  return sum;
}

ROUNDPIPE_INLINE std::vector<LedgerLine> DeviceMemoryPlan::ledger() const {
  constexpr char const* names[] = {"parameters (transient copies)",
                                   "parameter gradients",
                                   "activations in",
                                   "activations out, loss",
                                   "saves on their way"};
  std::vector<LedgerLine> lines;
  auto const add = [&](char const* of, auto const& layouts) {
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      if (auto const& ring = layouts[i]; ring.count > 0) {
        lines.push_back({LedgerLine::Space::device,
                         std::string(names[i]) + of + " x" + std::to_string(ring.count),
                         ring.entry_bytes * ring.count});
      }
    }
  };
  add("", rings);
  add(" of forward stages", forward_rings);
  lines.push_back(
      {LedgerLine::Space::device, "saved activations, inner boundaries, workspace", scratch_bytes});
  for (auto const kind : ResidentLayout::kinds) {
    if (auto const& room = resident.of(kind); room.count > 0) {
      auto const* const name =
          kind == BufferKind::checkpoint ? "resident checkpoints" : "resident boundary gradients";
      lines.push_back({LedgerLine::Space::device,
                       std::string(name) + " x" + std::to_string(room.count),
                       room.entry_bytes * room.count});
    }
  }
  return lines;
}

ROUNDPIPE_INLINE DeviceMemoryPlan plan_device_memory(std::span<StageLayout const> stages,
                                                     Buffering buffering) {
  DeviceMemoryPlan plan;
  plan.buffering = buffering;
  std::size_t const counts[] = {buffering.parameters,
                                buffering.gradients,
                                buffering.activations,
                                buffering.activations,
                                buffering.saves};
  Bytes StageLayout::* const needs[] = {&StageLayout::parameter_bytes,
                                        &StageLayout::gradient_bytes,
                                        &StageLayout::in_bytes,
                                        &StageLayout::out_bytes,
                                        &StageLayout::save_bytes};
  auto const add = [&](auto& rings, bool of_forward) {
    for (std::size_t i = 0; i < rings.size(); ++i) {
      auto& ring = rings[i];
      ring.offset = plan.bytes;
      for (auto const& stage : stages) {
        if (stage.has_own_rings() == of_forward) {
          ring.entry_bytes = std::max(ring.entry_bytes, stage.*needs[i]);
        }
      }
      auto const may_be_none = of_forward || i == static_cast<std::size_t>(BufferKind::saves);
      ring.count = may_be_none && ring.entry_bytes == 0 ? 0 : counts[i];
      plan.bytes += ring.entry_bytes * ring.count;
    }
  };
  add(plan.rings, false);
  add(plan.forward_rings, true);
  plan.scratch_offset = plan.bytes;
  for (auto const& stage : stages) {
    plan.scratch_bytes = std::max(plan.scratch_bytes, stage.scratch_bytes);
  }
  plan.bytes += plan.scratch_bytes;
  return plan;
}

}  // namespace roundpipe
