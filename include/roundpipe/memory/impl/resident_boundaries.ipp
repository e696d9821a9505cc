// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/boundary_place.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::vector<BoundaryAccess> boundary_accesses(StageLayout const& stage,
                                                               Pass const& pass) {
  std::vector<BoundaryAccess> accesses;
  auto const i = pass.layer;
  auto const& places = stage.layers[i - stage.range.first];
  auto const is_entry = [](Place const& place) {
    return place.area == Area::activations_in || place.area == Area::activations_out;
  };
  if (is_entry(places.input) && places.input.bytes > 0) {
    accesses.push_back({BufferKind::checkpoint, i - 1, false, places.input});
  }
  if (pass.runs_backward()) {
    if (is_entry(places.output_gradient)) {
      accesses.push_back({BufferKind::boundary_gradient, i, false, places.output_gradient});
    }
    if (is_entry(places.input_gradient)) {
      accesses.push_back({BufferKind::boundary_gradient, i - 1, true, places.input_gradient});
    }
  } else if (is_entry(places.output)) {
    accesses.push_back({BufferKind::checkpoint, i, true, places.output});
  }
  return accesses;
}

}  // namespace roundpipe
