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
  for (std::size_t i = 0; i < rings.size(); ++i) {
    if (rings[i].count == 0) {
      continue;
    }
    lines.push_back({LedgerLine::Space::device,
                     names[i] + (" x" + std::to_string(rings[i].count)),
                     rings[i].entry_bytes * rings[i].count});
  }
  lines.push_back(
      {LedgerLine::Space::device, "saved activations, inner boundaries, workspace", scratch_bytes});
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
  for (std::size_t i = 0; i < plan.rings.size(); ++i) {
    auto& ring = plan.rings[i];
    ring.offset = plan.bytes;
    for (auto const& stage : stages) {
      ring.entry_bytes = std::max(ring.entry_bytes, stage.*needs[i]);
    }
    auto const may_be_none = i == static_cast<std::size_t>(BufferKind::saves);
    ring.count = may_be_none && ring.entry_bytes == 0 ? 0 : counts[i];
    plan.bytes += ring.entry_bytes * ring.count;
  }
  plan.scratch_offset = plan.bytes;
  for (auto const& stage : stages) {
    plan.scratch_bytes = std::max(plan.scratch_bytes, stage.scratch_bytes);
  }
  plan.bytes += plan.scratch_bytes;
  return plan;
}

}  // namespace roundpipe
