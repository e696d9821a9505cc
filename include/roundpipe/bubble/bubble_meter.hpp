// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Finds out, in measured runs, what idle devices waited for.

#include <roundpipe/bubble/bubble_trace.hpp>
#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/timeline.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace roundpipe {

/// Sums the idle time over training calls, which are added in the order in which they ran.
///
/// \ref detail::trace_bubble charges the time between two actions of a device's compute lane, as
/// far as their own graphs tell. A wait for an earlier graph is a wait for the optimizer if a host
/// lane causes it, otherwise for memory. The rest is dispatch, or drain before a device's first
/// action of a call.
class BubbleMeter {
 public:
  explicit BubbleMeter(std::size_t devices) : busy_until_s_(devices) {}

  /// What an action waits for outside its own graph.
  enum class External { none, device, host };

  /// \p entries are the actions of \p graph, in its order; \p external says what each one waits
  /// for.
  void add(ActionGraph const& graph,
           std::span<TimelineEntry const> entries,
           std::function<External(ActionId)> const& external);

  [[nodiscard]] Bubbles const& bubbles() const noexcept { return bubbles_; }

  /// Starts over: forgets everything added so far.
  void forget() noexcept { bubbles_ = {}; }

 private:
  /// The actions of one graph, in the form that \ref detail::trace_bubble reads.
  struct View {
    ActionGraph const& graph;
    std::span<TimelineEntry const> entries;
    std::vector<std::optional<std::size_t>> const& lane_before;
    std::function<External(ActionId)> const& external;

    [[nodiscard]] TimelineEntry const& entry(std::size_t i) const { return entries[i]; }

    [[nodiscard]] std::optional<std::size_t> before(std::size_t i) const { return lane_before[i]; }

    /// Those of its own graph.
    [[nodiscard]] std::vector<ActionId> const& waits(std::size_t i) const {
      return graph.actions[i].waits;
    }

    /// Whether \p user used the former content of a device ring entry that \p copy writes. The
    /// previous copy of the lane, into the neighbouring entry, is not such a user.
    [[nodiscard]] bool waits_for_place(std::size_t copy, std::size_t user) const;

    [[nodiscard]] BubbleCause rest(std::size_t i, bool first) const;
  };

  std::vector<std::optional<double>> busy_until_s_;  // by device
  Bubbles bubbles_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/bubble/impl/bubble_meter.ipp>
#endif
