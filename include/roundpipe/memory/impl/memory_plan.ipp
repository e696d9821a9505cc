// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/memory/stage_region.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE Bytes total_bytes(std::span<LedgerLine const> ledger, LedgerLine::Space space) {
  Bytes sum = 0;
  for (auto const& line : ledger) {
    sum += line.space == space ? line.bytes : 0;
  }
  return sum;
}

ROUNDPIPE_INLINE ArenaRange DeviceMemoryPlan::entry(Ring const& ring,
                                                    std::size_t acquisition,
                                                    StageLayout const& stage) const {
  if (auto const block = resident_block(ring); block.valid()) {
    return resident_parameters.at(block);
  }
  if (is_resident({ring, 0})) {
    auto const& room = resident.of(ring.kind);
    return {room.offset + ring.index * room.entry_bytes, room.entry_bytes};
  }
  auto const& layout = this->ring(ring);
  auto const position = acquisition % layout.count;
  auto const at_end = [&](Bytes size, Bytes bottom, Bytes top) {
    return ArenaRange{position == 0 ? bottom : region_bytes - top - size, size};
  };
  if (in_region(ring.kind) && ring.kind == BufferKind::gradients) {
    return at_end(stage.gradient_bytes, stage.region.gradients_bottom, stage.region.gradients_top);
  }
  if (in_region(ring.kind) && !stage.has_own_rings()) {
    return at_end(stage.parameter_bytes, 0, 0);
  }
  return {layout.offset + position * layout.entry_bytes, layout.entry_bytes};
}

ROUNDPIPE_INLINE Bytes DeviceMemoryPlan::resident_parameter_bytes() const {
  Bytes size = 0;
  for (auto const& [block, place] : resident_parameters) {
    size += place.bytes;
  }
  return size;
}

ROUNDPIPE_INLINE std::vector<LedgerLine> DeviceMemoryPlan::ledger() const {
  constexpr char const* names[] = {"parameters (transient copies)",
                                   "parameter gradients",
                                   "activations in",
                                   "activations out, loss",
                                   "saves on their way"};
  std::vector<LedgerLine> lines;
  auto const add_line = [&](std::string name, Bytes size) {
    lines.push_back({LedgerLine::Space::device, std::move(name), size});
  };
  auto const times = [](std::size_t count) { return " x" + std::to_string(count); };
  auto const with = [&](char const* name, BufferKind kind) {
    return in_region(kind) ? name + times(ring(kind).count) + ", " : std::string();
  };
  add_line(with("parameters", BufferKind::parameters) + with("gradients", BufferKind::gradients) +
               "scratch of stages",
           region_bytes);
  auto const add = [&](char const* of, auto const& layouts, bool of_all) {
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      auto const& ring = layouts[i];
      if (ring.count > 0 && !(of_all && in_region(static_cast<BufferKind>(i)))) {
        add_line(std::string(names[i]) + of + times(ring.count), ring.entry_bytes * ring.count);
      }
    }
  };
  add("", rings, true);
  add(" of forward stages", forward_rings, false);
  if (!resident_parameters.empty()) {
    add_line("resident parameters" + times(resident_parameters.size()), resident_parameter_bytes());
  }
  for (auto const kind : ResidentLayout::kinds) {
    if (auto const& room = resident.of(kind); room.count > 0) {
      auto const* const name =
          kind == BufferKind::checkpoint ? "resident checkpoints" : "resident boundary gradients";
      add_line(name + times(room.count), room.entry_bytes * room.count);
    }
  }
  return lines;
}

ROUNDPIPE_INLINE DeviceMemoryPlan plan_device_memory(std::span<StageLayout const> stages,
                                                     Buffering buffering,
                                                     std::span<DeviceTurns const> turns) {
  DeviceMemoryPlan plan;
  plan.buffering = buffering;
  std::size_t const counts[] = {buffering.parameters,
                                buffering.gradients,
                                buffering.activations,
                                buffering.activations,
                                buffering.saves};
  Bytes StageLayout::* const sizes[] = {&StageLayout::parameter_bytes,
                                        &StageLayout::gradient_bytes,
                                        &StageLayout::in_bytes,
                                        &StageLayout::out_bytes,
                                        &StageLayout::save_bytes};
  auto const add = [&](auto& rings, bool of_forward) {
    for (std::size_t i = 0; i < rings.size(); ++i) {
      auto& ring = rings[i];
      for (auto const& stage : stages) {
        if (stage.has_own_rings() == of_forward) {
          ring.entry_bytes = std::max(ring.entry_bytes, stage.*sizes[i]);
        }
      }
      auto const may_be_none = of_forward || i == static_cast<std::size_t>(BufferKind::saves);
      ring.count = may_be_none && ring.entry_bytes == 0 ? 0 : counts[i];
    }
  };
  add(plan.rings, false);
  add(plan.forward_rings, true);

  auto const has_parameters = plan.in_region(BufferKind::parameters);
  auto const has_gradients = plan.in_region(BufferKind::gradients);
  std::vector<RegionNeeds> needs;
  for (auto const& stage : stages) {
    auto const shares = has_parameters && !stage.has_own_rings();
    needs.push_back({.parameters = shares ? stage.parameter_bytes : 0,
                     .gradients = has_gradients ? stage.gradient_bytes : 0,
                     .scratch = stage.scratch_bytes,
                     .reads_to_the_end = stage.reads_to_the_end});
  }
  auto region = lay_out_region(needs,
                               turns,
                               has_parameters ? buffering.parameters : 1,
                               has_gradients ? buffering.gradients : 1);
  plan.bytes = plan.region_bytes = region.bytes;
  plan.places = std::move(region.stages);

  auto const place = [&](auto& rings, bool of_all) {
    for (std::size_t i = 0; i < rings.size(); ++i) {
      if (!(of_all && plan.in_region(static_cast<BufferKind>(i)))) {
        rings[i].offset = plan.bytes;
        plan.bytes += rings[i].entry_bytes * rings[i].count;
      }
    }
  };
  place(plan.rings, true);
  place(plan.forward_rings, false);
  return plan;
}

}  // namespace roundpipe
