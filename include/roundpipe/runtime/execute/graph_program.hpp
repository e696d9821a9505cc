// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A graph made ready to run: its actions by issuing thread, and what later graphs need.

#include <roundpipe/config.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/issuer.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

using NameOfAction = std::function<std::string(Action const&)>;

/// An \ref ActionGraph with the look-ups that running it takes. Made once, run many times.
class GraphProgram {
 public:
  /// \p name_of says what users call the layer or the block of an action; empty: nothing.
  explicit GraphProgram(ActionGraph graph, NameOfAction const& name_of = {});

  [[nodiscard]] ActionGraph const& graph() const noexcept { return graph_; }
  [[nodiscard]] Action const& operator[](ActionId id) const { return graph_.actions[id.index()]; }

  /// The actions that \p issuer, of a relative device, issues, over all its lanes, in issue order.
  [[nodiscard]] std::vector<ActionId> const& of_issuer(Issuer issuer) const {
    return issuers_[issuer.index()];
  }
  /// The first action of a relative device in issue order; none without actions of it.
  [[nodiscard]] std::optional<ActionId> first_on(DeviceId device) const;
  /// The actions of one of the host's lanes.
  [[nodiscard]] std::span<ActionId const> of_host(LaneKind kind) const;
  /// One more than the highest \ref host_lane_index of an action; 0 without actions of the host.
  [[nodiscard]] std::size_t host_lanes() const noexcept { return hosts_.size(); }
  /// Where an action stands in its thread's list.
  [[nodiscard]] std::size_t position(ActionId id) const { return position_[id.index()]; }
  /// The last action of each lane.
  [[nodiscard]] std::vector<ActionId> const& tails() const noexcept { return tails_; }
  /// The downloads that bring losses.
  [[nodiscard]] std::vector<ActionId> const& losses() const noexcept { return losses_; }
  /// The actions that measure gradients.
  [[nodiscard]] std::vector<ActionId> const& norms() const noexcept { return norms_; }
  /// What errors and traces call an action.
  [[nodiscard]] std::string const& label(ActionId id) const { return labels_[id.index()]; }

 private:
  [[nodiscard]] std::vector<ActionId>& list_of(Lane const& lane);

  void keep_latest(std::vector<ActionId>& users) const;

  ActionGraph graph_;
  std::vector<std::vector<ActionId>> issuers_;  // by index
  std::vector<std::vector<ActionId>> hosts_;    // by host_lane_index
  std::vector<std::size_t> position_;
  std::vector<ActionId> tails_;
  std::vector<ActionId> losses_;
  std::vector<ActionId> norms_;
  std::vector<std::string> labels_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/execute/impl/graph_program.ipp>
#endif
