// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A graph made ready to run: its actions by issuing thread, and what later graphs need.

#include <roundpipe/graph/action_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// An \ref ActionGraph with the look-ups that running it takes. Made once, run many times.
class GraphProgram {
 public:
  explicit GraphProgram(ActionGraph graph) : graph_(std::move(graph)) {
    devices_.resize(graph_.devices);
    position_.resize(graph_.actions.size());
    for (std::size_t i = 0; i < graph_.actions.size(); ++i) {
      auto const& action = graph_.actions[i];
      auto& list = list_of(action.lane);
      position_[i] = list.size();
      list.push_back(ActionId(i));
      labels_.push_back(to_string(action));
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
    for (std::size_t i = 0; i < graph_.actions.size(); ++i) {
      tails_[graph_.actions[i].lane] = ActionId(i);
    }
  }

  [[nodiscard]] ActionGraph const& graph() const noexcept { return graph_; }
  [[nodiscard]] Action const& operator[](ActionId id) const { return graph_.actions[id.index()]; }

  /// The actions of a relative device, over all its lanes, in issue order.
  [[nodiscard]] std::vector<ActionId> const& of_device(std::size_t device) const {
    return devices_[device];
  }
  /// The actions of one of the host's lanes.
  [[nodiscard]] std::span<ActionId const> of_host(LaneKind kind) const {
    auto const index = host_lane_index(kind);
    return index < hosts_.size() ? std::span<ActionId const>(hosts_[index])
                                 : std::span<ActionId const>();
  }
  /// One more than the highest \ref host_lane_index of an action; 0 without actions of the host.
  [[nodiscard]] std::size_t host_lanes() const noexcept { return hosts_.size(); }
  /// Where an action stands in its thread's list.
  [[nodiscard]] std::size_t position(ActionId id) const { return position_[id.index()]; }
  /// The last action of each lane.
  [[nodiscard]] std::map<Lane, ActionId> const& tails() const noexcept { return tails_; }
  /// The downloads that bring losses.
  [[nodiscard]] std::vector<ActionId> const& losses() const noexcept { return losses_; }
  /// The actions that measure gradients.
  [[nodiscard]] std::vector<ActionId> const& norms() const noexcept { return norms_; }
  /// What errors and traces call an action.
  [[nodiscard]] std::string const& label(ActionId id) const { return labels_[id.index()]; }

 private:
  [[nodiscard]] std::vector<ActionId>& list_of(Lane const& lane) {
    if (lane.device.valid()) {
      return devices_[lane.device.index()];
    }
    auto const index = host_lane_index(lane.kind);
    hosts_.resize(std::max(hosts_.size(), index + 1));
    return hosts_[index];
  }

  void keep_latest(std::vector<ActionId>& users) const {
    std::map<Lane, ActionId> latest;
    for (auto const user : users) {
      auto& kept = latest[graph_.actions[user.index()].lane];
      kept = std::max(kept, user);
    }
    // Who waits for a user waits for those that it has waited for: a wait for them would only
    // keep their run from being used again.
    auto const is_implied = [&](ActionId user) {
      return std::ranges::any_of(latest, [&](auto const& other) {
        auto const& waits = graph_.actions[other.second.index()].waits;
        return std::ranges::find(waits, user) != waits.end();
      });
    };
    users.clear();
    for (auto const& [lane, user] : latest) {
      if (!is_implied(user)) {
        users.push_back(user);
      }
    }
  }

  ActionGraph graph_;
  std::vector<std::vector<ActionId>> devices_;
  std::vector<std::vector<ActionId>> hosts_;  // by host_lane_index
  std::vector<std::size_t> position_;
  std::map<Lane, ActionId> tails_;
  std::vector<ActionId> losses_;
  std::vector<ActionId> norms_;
  std::vector<std::string> labels_;
};

}  // namespace roundpipe
