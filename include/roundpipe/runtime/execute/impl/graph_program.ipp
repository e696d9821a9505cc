// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE GraphProgram::GraphProgram(ActionGraph graph, NameOfAction const& name_of)
    : graph_(std::move(graph)) {
  issuers_.resize(issuers_of(graph_.devices));
  position_.resize(graph_.actions.size());
  for (std::size_t i = 0; i < graph_.actions.size(); ++i) {
    auto const& action = graph_.actions[i];
    auto& list = list_of(action.lane);
    position_[i] = list.size();
    list.push_back(ActionId(i));
    labels_.push_back(to_string(action, name_of ? name_of(action) : std::string()));
    if (action.kind == ActionKind::download_activation &&
        find_buffer(action, BufferKind::loss) != nullptr) {
      losses_.push_back(ActionId(i));
    }
    if (action.kind == ActionKind::gradient_norm) {
      norms_.push_back(ActionId(i));
    }
  }
  for (auto& [ring, use] : graph_.rings) {
    for (auto& users : use.users) {
      keep_latest(users);
    }
  }
  std::vector<ActionId> all;
  for (std::size_t i = 0; i < graph_.actions.size(); ++i) {
    all.emplace_back(i);
  }
  tails_ = latest_of_lanes(graph_.actions, std::move(all));
}

ROUNDPIPE_INLINE std::optional<ActionId> GraphProgram::first_on(DeviceId device) const {
  std::optional<ActionId> first;
  for (auto const part : Issuer::parts) {
    if (auto const& actions = of_issuer({device, part}); !actions.empty()) {
      first = first ? std::min(*first, actions.front()) : actions.front();
    }
  }
  return first;
}

ROUNDPIPE_INLINE std::span<ActionId const> GraphProgram::of_host(LaneKind kind) const {
  auto const index = host_lane_index(kind);
  return index < hosts_.size() ? std::span<ActionId const>(hosts_[index])
                               : std::span<ActionId const>();
}

ROUNDPIPE_INLINE std::vector<ActionId>& GraphProgram::list_of(Lane const& lane) {
  if (lane.device.valid()) {
    return issuers_[Issuer::of(lane).index()];
  }
  auto const index = host_lane_index(lane.kind);
  hosts_.resize(std::max(hosts_.size(), index + 1));
  return hosts_[index];
}

ROUNDPIPE_INLINE void GraphProgram::keep_latest(std::vector<ActionId>& users) const {
  auto const latest = latest_of_lanes(graph_.actions, std::move(users));
  // Who waits for a user waits for those that it has waited for: a wait for them would only
  // keep their run from being used again.
  auto const is_implied = [&](ActionId user) {
    return std::any_of(latest.begin(), latest.end(), [&](ActionId other) {
      auto const& waits = graph_.actions[other.index()].waits;
      return std::find(waits.begin(), waits.end(), user) != waits.end();
    });
  };
  users.clear();
  std::remove_copy_if(latest.begin(), latest.end(), std::back_inserter(users), is_implied);
}

}  // namespace roundpipe
