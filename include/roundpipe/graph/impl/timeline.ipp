// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/timeline.hpp>

#include <cstddef>

namespace roundpipe {

ROUNDPIPE_INLINE TimelineEntry timeline_entry(
    Action const& action, std::size_t graph, ActionId id, Lane lane, double start_s, double end_s) {
  return {graph,
          id,
          action.kind,
          lane,
          action.slot,
          action.stage,
          action.round,
          action.micro_batch,
          action.layer,
          action.block,
          action.bytes,
          start_s,
          end_s,
          action.save_level,
          action.hands_on_output};
}

}  // namespace roundpipe
