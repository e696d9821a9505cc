// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Finds in measured runs what idle devices waited for.

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

/// Sums up idle time over training calls, which are added in the order in which they ran.
///
/// The time between two actions of a device's compute lane is charged as \ref detail::trace_bubble
/// says, as far as their own graphs tell. What waits for earlier graphs waits for the optimizer if
/// for any lane of the host, else for memory; the rest is dispatch, or drain before a device's
/// first action of a call.
class BubbleMeter {
 public:
  explicit BubbleMeter(std::size_t devices) : busy_until_s_(devices) {}

  /// What an action waits for besides its own graph's actions.
  enum class External { none, device, host };

  /// \p entries are the actions of \p graph, in its order; \p external says what each waits for.
  void add(ActionGraph const& graph,
           std::span<TimelineEntry const> entries,
           std::function<External(ActionId)> const& external);

  [[nodiscard]] Bubbles const& bubbles() const noexcept { return bubbles_; }

  /// Begins anew with what comes after all that was added.
  void forget() noexcept { bubbles_ = {}; }

 private:
  /// One graph's actions, as \ref detail::trace_bubble sees them.
  struct View {
    ActionGraph const& graph;
    std::span<TimelineEntry const> entries;
    std::vector<std::optional<std::size_t>> const& before;  // on the same lane
    std::function<External(ActionId)> const& external;

    [[nodiscard]] TimelineEntry const& entry(std::size_t i) const { return entries[i]; }

    /// Of what \p i waited for in its own graph, what ended last.
    [[nodiscard]] std::optional<std::size_t> last_to_end(std::size_t i) const;

    /// Whether \p user used what lay before in an entry of a device's ring that \p copy writes. The
    /// lane's copy before, into the entry next to it, is no such user.
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
