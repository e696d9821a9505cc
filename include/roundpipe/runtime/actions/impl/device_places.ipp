// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/runtime/actions/device_places.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE UsePlace const& DeviceAction::place_of(BlockUseId use) const {
  return stage().place_of(use);
}

ROUNDPIPE_INLINE DeviceBytes DevicePlaces::entry(DeviceAction const& here, BufferKind kind) const {
  auto const* const buffer = find_buffer(here.action, kind);
  return buffer == nullptr ? DeviceBytes{} : entry(here, *buffer);
}

ROUNDPIPE_INLINE DeviceBytes DevicePlaces::entry(DeviceAction const& here,
                                                 Buffer const& buffer) const {
  auto const acquisition = here.run.ring_base(buffer.ring) + buffer.sequence;
  auto const range = plan_.entry(buffer.ring, acquisition, here.stage());
  return arena(here).subspan(range.offset, range.bytes);
}

ROUNDPIPE_INLINE DeviceBytes DevicePlaces::parameters(DeviceAction const& here,
                                                      BlockId block) const {
  auto const wanted = plan_.resident_parameters.contains(block) ? block : BlockId::none();
  for (auto const* const list : {&here.action.writes, &here.action.reads}) {
    for (auto const& buffer : *list) {
      if (buffer.ring.kind == BufferKind::parameters && resident_block(buffer.ring) == wanted) {
        return entry(here, buffer);
      }
    }
  }
  return {};
}

ROUNDPIPE_INLINE DeviceBytes DevicePlaces::at(DeviceAction const& here, Place const& place) const {
  if (place.bytes == 0 || place.area == Area::none) {
    return {};
  }
  return area(here, place.area).subspan(place.offset, place.bytes);
}

ROUNDPIPE_INLINE DeviceBytes DevicePlaces::resident(DeviceAction const& here,
                                                    std::vector<Buffer> const& buffers,
                                                    BufferKind kind) const {
  for (auto const& [ring, sequence] : buffers) {
    if (ring.kind == kind && ring.device.valid()) {
      auto const range = plan_.entry(ring, sequence, here.stage());
      return arenas_[here.run.physical(ring.device).index()].subspan(range.offset, range.bytes);
    }
  }
  return {};
}

ROUNDPIPE_INLINE DeviceBytes DevicePlaces::area(DeviceAction const& here, Area area) const {
  switch (area) {
    case Area::activations_in:
      return entry(here, BufferKind::activations_in);
    case Area::activations_out:
      return entry(here, BufferKind::activations_out);
    case Area::scratch:
      return arena(here).subspan(here.stage().region.scratch, here.stage().scratch_bytes);
    case Area::none:
      break;
  }
  return {};
}

}  // namespace roundpipe
