// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which actions of a sequence end before which others begin, by waits and lanes alone.

#include <roundpipe/config.hpp>
#include <roundpipe/graph/graph_sequence.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace roundpipe {

/// \brief The happens-before relation of a sequence, as vector clocks over lanes, and whether the
/// sequence can run at all.
///
/// An action begins after its waits and after the previous action on its lane. Each \ref Issuer
/// issues its actions in issue order. Before it issues an action, it waits until all device actions
/// that the action waits for are issued, and some wait until the host's are done; so an issue may
/// wait, too.
class SequenceOrder {
 public:
  /// \p actions must outlive the order.
  explicit SequenceOrder(std::span<UnrolledAction const> actions);

  /// Whether \p a is over when \p b begins. Meaningless when some actions never run.
  [[nodiscard]] bool holds(std::size_t a, std::size_t b) const;

  /// Whether both are on one lane, so that their order is fixed.
  [[nodiscard]] bool same_lane(std::size_t a, std::size_t b) const {
    return lanes_[a] == lanes_[b];
  }

  /// A cycle of actions, each waiting for the next; empty when all can run.
  [[nodiscard]] std::vector<std::size_t> const& deadlock() const noexcept { return deadlock_; }

 private:
  /// An action has two parts: 2 i is its issue, 2 i + 1 its run.
  struct PartOrder {
    std::size_t earlier = 0;
    std::size_t later = 0;
  };
  class PartLists;

  void number_lanes();

  /// Which part begins only when which other is over.
  [[nodiscard]] std::vector<PartOrder> part_orders() const;

  /// Runs every action as soon as possible.
  void run();

  /// \p before: the parts right before the run of \p i.
  void set_clock(std::size_t i, std::span<std::size_t const> before);

  /// Follows the waits back from \p part, which never runs, until a part repeats.
  void find_circle(std::size_t part,
                   PartLists const& before,
                   std::vector<std::size_t> const& missing);

  std::span<UnrolledAction const> actions_;
  std::vector<std::size_t> lanes_;        // by action
  std::vector<std::uint32_t> positions_;  // for each action: its position in its lane, from 1
  std::size_t lane_count_ = 0;
  std::vector<std::uint32_t> clocks_;  // for each action and lane: how much is over at its end
  std::vector<std::size_t> deadlock_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/graph/impl/sequence_order.ipp>
#endif
