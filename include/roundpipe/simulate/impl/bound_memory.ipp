// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/held_bytes.hpp>
#include <roundpipe/model/layer_bytes.hpp>
#include <roundpipe/simulate/bound_memory.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::vector<DeviceUse> bound_device_bytes(Simulation const& simulation,
                                                           std::span<LayerBytes const> layers) {
  using Key = std::tuple<std::size_t, LayerId, RoundId, MicroBatchId>;  // in a graph
  struct Times {
    std::size_t device = 0;
    double forward_s = 0;
    double saving_s = 0;
    double end_s = 0;
  };
  std::map<Key, Times> works;
  std::map<std::pair<std::size_t, StageId>, LayerId> firsts;  // the first layer of each stage
  for (auto const& entry : simulation.timeline) {
    if (entry.lane.kind != LaneKind::compute) {
      continue;
    }
    require(entry.layer.index() < layers.size(),
            Errc::invalid_argument,
            "the layer bytes of a simulation lack a layer of the graph");
    auto const [first, inserted] = firsts.try_emplace({entry.graph, entry.stage}, entry.layer);
    first->second = std::min(first->second, entry.layer);
    auto const [work, is_new] =
        works.try_emplace({entry.graph, entry.layer, entry.round, entry.micro_batch});
    auto& times = work->second;
    times.device = entry.lane.device.index();
    times.forward_s = is_new ? entry.start_s : times.forward_s;
    if (entry.kind == ActionKind::recompute) {
      times.saving_s = entry.start_s;
    }
    times.end_s = std::max(times.end_s, entry.end_s);
  }
  std::set<std::pair<std::size_t, LayerId>> begins;  // stages, by graph
  for (auto const& [stage, layer] : firsts) {
    begins.emplace(stage.first, layer);
  }
  std::vector<DeviceUse> result(simulation.timeline.devices);
  std::vector<detail::HeldBytes> boundaries(result.size());
  std::vector<detail::HeldBytes> saved(result.size());
  std::vector<std::set<LayerId>> run(result.size());
  for (auto const& [work, times] : works) {
    auto const& [graph, layer, round, micro_batch] = work;
    auto const& bytes = layers[layer.index()];
    run[times.device].insert(layer);
    saved[times.device].hold({times.saving_s, times.end_s},
                             bytes.saved_bytes + bytes.boundary_bytes);
    if (layer.index() > 0 && begins.contains({graph, layer})) {
      boundaries[times.device].hold({times.forward_s, times.end_s},
                                    layers[layer.index() - 1].boundary_bytes);
    }
  }
  for (std::size_t device = 0; device < result.size(); ++device) {
    auto& held = result[device];
    Bytes largest_boundary = 0;
    for (auto const layer : run[device]) {
      auto const& bytes = layers[layer.index()];
      held.parameters += bytes.parameter_bytes;
      held.gradients += bytes.gradient_bytes;
      held.workspace = std::max(held.workspace, bytes.workspace_bytes);
      largest_boundary = std::max(largest_boundary, bytes.boundary_bytes);
    }
    held.workspace += 2 * largest_boundary;
    held.boundaries = boundaries[device].peak().bytes;
    held.saved = saved[device].peak().bytes;
  }
  return result;
}

}  // namespace roundpipe
