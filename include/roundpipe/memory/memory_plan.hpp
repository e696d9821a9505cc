// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The device's arenas at fixed offsets, and the ledger of all planned bytes.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/stage_layout.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

/// How many entries the rings of a device have. Two let transfers run beside compute; with one,
/// the next upload waits until the entry is free (a memory stall).
struct Buffering {
  std::size_t parameters = 2;
  std::size_t gradients = 2;
  std::size_t activations = 2;

  friend bool operator==(Buffering const&, Buffering const&) = default;
};

/// A ring in a device's arena.
struct RingLayout {
  Bytes offset = 0;  ///< From the arena's beginning.
  Bytes entry_bytes = 0;
  std::size_t count = 0;
};

/// One class of planned bytes.
struct LedgerLine {
  enum class Space { device, host };
  Space space = Space::device;
  std::string name;
  Bytes bytes = 0;  ///< On the device: of each device.
};

[[nodiscard]] inline Bytes total_bytes(std::span<LedgerLine const> ledger,
                                       LedgerLine::Space space) {
  Bytes sum = 0;
  for (auto const& line : ledger) {
    sum += line.space == space ? line.bytes : 0;
  }
  return sum;
}

/// The plan of one device's memory; all devices have the same.
struct DeviceMemoryPlan {
  Buffering buffering;
  std::array<RingLayout, device_ring_count> rings;  ///< By BufferKind.
  Bytes scratch_offset = 0;
  Bytes scratch_bytes = 0;
  Bytes bytes = 0;  ///< Of the whole arena.

  [[nodiscard]] RingLayout const& ring(BufferKind kind) const {
    return rings.at(static_cast<std::size_t>(kind));
  }

  /// The device's part of the ledger.
  [[nodiscard]] std::vector<LedgerLine> ledger() const {
    constexpr char const* names[] = {"parameters (transient copies)",
                                     "parameter gradients",
                                     "activations in",
                                     "activations out, loss"};
    std::vector<LedgerLine> lines;
    for (std::size_t i = 0; i < rings.size(); ++i) {
      lines.push_back({LedgerLine::Space::device,
                       names[i] + (" x" + std::to_string(rings[i].count)),
                       rings[i].entry_bytes * rings[i].count});
    }
    lines.push_back({LedgerLine::Space::device,
                     "saved activations, inner boundaries, workspace",
                     scratch_bytes});
    return lines;
  }
};

/// Plans the arena that holds any of \p stages: each ring's entry is as large as the largest stage
/// needs.
[[nodiscard]] inline DeviceMemoryPlan plan_device_memory(std::span<StageLayout const> stages,
                                                         Buffering buffering) {
  DeviceMemoryPlan plan;
  plan.buffering = buffering;
  std::size_t const counts[] = {
      buffering.parameters, buffering.gradients, buffering.activations, buffering.activations};
  Bytes StageLayout::* const needs[] = {&StageLayout::parameter_bytes,
                                        &StageLayout::gradient_bytes,
                                        &StageLayout::in_bytes,
                                        &StageLayout::out_bytes};
  for (std::size_t i = 0; i < plan.rings.size(); ++i) {
    auto& ring = plan.rings[i];
    ring.offset = plan.bytes;
    ring.count = counts[i];
    for (auto const& stage : stages) {
      ring.entry_bytes = std::max(ring.entry_bytes, stage.*needs[i]);
    }
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
