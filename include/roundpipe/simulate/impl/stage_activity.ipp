// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/pass_actions.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <roundpipe/simulate/stage_activity.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::vector<LayerRange> forward_ranges(Partition const& partition) {
  std::vector<LayerRange> ranges;
  for (auto const& [kind, range] : stages_of(partition)) {
    if (kind == StageKind::forward || kind == StageKind::fused) {
      ranges.push_back(range);
    }
  }
  return ranges;
}

ROUNDPIPE_INLINE std::vector<std::size_t> peak_in_flight_forwards(Simulation const& simulation,
                                                                  Partition const& partition) {
  auto const ranges = forward_ranges(partition);
  std::map<std::size_t, std::size_t> stage_of;  // by its first layer
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].count > 0) {
      stage_of[ranges[i].first] = i;
    }
  }
  auto const is_fused = has_fused_stage(partition);
  struct Change {
    double at_s;
    int by;
    std::size_t stage;
  };
  std::vector<Change> changes;
  for (auto const& entry : simulation.timeline) {
    auto const stage =
        entry.lane.kind == LaneKind::compute ? stage_of.find(entry.layer.index()) : stage_of.end();
    if (stage == stage_of.end()) {
      continue;
    }
    auto const fused = is_fused && stage->second + 1 == ranges.size();
    auto const kind = fused ? StageKind::fused : StageKind::forward;
    if (entry.kind == action_kind(layer_passes(kind).front())) {
      changes.push_back({entry.start_s, 1, stage->second});
    } else if (entry.kind == ActionKind::backward || entry.kind == ActionKind::weight_gradient) {
      changes.push_back({entry.end_s, -1, stage->second});
    }
  }
  std::stable_sort(changes.begin(), changes.end(), [](Change const& a, Change const& b) {
    return a.at_s != b.at_s ? a.at_s < b.at_s : a.by < b.by;
  });
  std::vector<int> held(ranges.size(), 0);
  std::vector<std::size_t> peaks(ranges.size(), 0);
  for (auto const& change : changes) {
    auto& count = held[change.stage];
    count += change.by;
    peaks[change.stage] =
        std::max(peaks[change.stage], static_cast<std::size_t>(std::max(count, 0)));
  }
  return peaks;
}

ROUNDPIPE_INLINE std::size_t count_hand_overs(Simulation const& simulation, std::size_t graph) {
  auto const& actions = simulation.actions;
  return static_cast<std::size_t>(
      std::count_if(actions.begin(), actions.end(), [&](UnrolledAction const& action) {
        auto const kind = action.action->kind;
        return action.graph == graph &&
               (kind == ActionKind::upload_activation || kind == ActionKind::upload_gradient) &&
               std::any_of(action.waits.begin(), action.waits.end(), [&](std::size_t wait) {
                 return actions[wait].action->kind == ActionKind::download_activation &&
                        actions[wait].lane.device != action.lane.device;
               });
      }));
}

}  // namespace roundpipe
