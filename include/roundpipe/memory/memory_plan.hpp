// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The device's arenas at fixed offsets, and the ledger of all planned bytes.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/memory/stage_region.hpp>

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

/// How many entries the rings of a device have. With two, transfers run beside compute; with one,
/// the next upload waits until the entry is free (a memory stall).
struct Buffering {
  std::size_t parameters = 2;
  std::size_t gradients = 2;
  std::size_t activations = 2;
  std::size_t saves = 2;  ///< Of one layer and micro-batch each; none where nothing is offloaded.

  friend bool operator==(Buffering const&, Buffering const&) = default;
};

/// A ring of equal entries in a device's arena.
struct RingLayout {
  Bytes offset = 0;  ///< From the arena's beginning.
  Bytes entry_bytes = 0;
  std::size_t count = 0;
};

/// The room of resident boundaries in a device's arena, by kind. Each is a row of equal rings of
/// one entry: entry i is that of ring i.
struct ResidentLayout {
  static constexpr std::array kinds{BufferKind::checkpoint, BufferKind::boundary_gradient};

  RingLayout checkpoints;
  RingLayout gradients;

  [[nodiscard]] RingLayout& of(BufferKind kind) noexcept {
    return kind == BufferKind::checkpoint ? checkpoints : gradients;
  }
  [[nodiscard]] RingLayout const& of(BufferKind kind) const noexcept {
    return kind == BufferKind::checkpoint ? checkpoints : gradients;
  }
};

/// One class of planned bytes.
struct LedgerLine {
  enum class Space { device, host };
  Space space = Space::device;
  std::string name;
  Bytes bytes = 0;  ///< On the device: of each device.
};

[[nodiscard]] Bytes total_bytes(std::span<LedgerLine const> ledger, LedgerLine::Space space);

/// Consecutive bytes of a device's arena.
struct ArenaRange {
  Bytes offset = 0;
  Bytes bytes = 0;
};

/// The plan of one device's memory; all devices have the same. It begins with the region that the
/// parameters, gradients and scratch of stages share, see \ref lay_out_region.
struct DeviceMemoryPlan {
  Buffering buffering;
  Bytes region_bytes = 0;
  std::vector<RegionPlaces> places;  ///< By stage.
  /// By BufferKind, with entries as large as the largest stage needs. For a ring that lies \ref
  /// in_region each stage has places of its own there.
  std::array<RingLayout, device_ring_count> rings;
  /// Of forward stages, where they have their own; see \ref StageLayout::has_own_rings.
  std::array<RingLayout, device_ring_count> forward_rings;
  ResidentLayout resident;
  std::map<BlockId, ArenaRange> resident_parameters;  ///< \ref ResidentBlocks, and their places.
  Bytes bytes = 0;                                    ///< Of the whole arena.

  [[nodiscard]] RingLayout const& ring(BufferKind kind) const {
    return rings.at(static_cast<std::size_t>(kind));
  }
  [[nodiscard]] RingLayout const& ring(Ring const& ring) const {
    auto const kind = static_cast<std::size_t>(ring.kind);
    return ring.index == forward_ring && forward_rings.at(kind).count > 0 ? forward_rings[kind]
                                                                          : rings.at(kind);
  }

  /// Whether the ring of all stages for \p kind lies in the region: one of parameters or gradients,
  /// of one or two entries. One of more has equal entries outside.
  [[nodiscard]] bool in_region(BufferKind kind) const {
    return (kind == BufferKind::parameters || kind == BufferKind::gradients) &&
           ring(kind).count <= 2;
  }

  /// The entry of \p ring that its acquisition number \p acquisition gives to \p stage; of a
  /// resident boundary's ring, its one entry.
  [[nodiscard]] ArenaRange entry(Ring const& ring,
                                 std::size_t acquisition,
                                 StageLayout const& stage) const;

  /// Adds a place for \p block, whose parameters stay and take \p size.
  void add_resident(BlockId block, Bytes size) {
    resident_parameters[block] = {bytes, size};
    bytes += size;
  }

  /// Adds room for resident boundaries of \p kind, as many and as large as \p size says.
  void add_resident(BufferKind kind, RingLayout size) {
    size.offset = bytes;
    resident.of(kind) = size;
    bytes += size.entry_bytes * size.count;
  }

  /// Of all places of resident parameters.
  [[nodiscard]] Bytes resident_parameter_bytes() const;

  /// The device's part of the ledger.
  [[nodiscard]] std::vector<LedgerLine> ledger() const;
};

/// Plans the arena that holds any of \p stages. \p turns: what devices run of each graph, see
/// \ref lay_out_region. An entry of other rings is as large as the largest stage needs.
/// \throws Error (invalid_argument) as \ref lay_out_region.
[[nodiscard]] DeviceMemoryPlan plan_device_memory(std::span<StageLayout const> stages,
                                                  Buffering buffering,
                                                  std::span<DeviceTurns const> turns = {});

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/memory_plan.ipp>
#endif
