// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Finds in measured runs what idle devices waited for.

#include <roundpipe/core/id.hpp>
#include <roundpipe/plan/action_graph.hpp>
#include <roundpipe/plan/bubbles.hpp>
#include <roundpipe/plan/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace roundpipe {

/// Sums up idle time over training calls, which are added in the order in which they ran.
///
/// The time between two actions of a device's compute lane is traced back from the later one: to
/// what ended last of all that it waited for (its lane's action before included), through that, to
/// what that waited for, and so on, until the device was busy. Each part of the time goes to what
/// was under way in it: copies are transfer stalls, or memory stalls where what they waited for was
/// their place; other devices' compute is imbalance, or fill before a device's first action of a
/// call; the host's work is an optimizer stall. What waits for earlier graphs waits for the
/// optimizer if for any lane of the host, else for memory; the rest is dispatch, or drain before a
/// device's first action of a call.
class BubbleMeter {
 public:
  explicit BubbleMeter(std::size_t devices) : busy_until_s_(devices) {}

  /// What an action waits for besides its own graph's actions.
  enum class External { none, device, host };

  /// \p entries are the actions of \p graph, in its order; \p external says what each waits for.
  void add(ActionGraph const& graph,
           std::span<TimelineEntry const> entries,
           std::function<External(ActionId)> const& external) {
    std::vector<std::optional<ActionId>> before(entries.size());  // on the same lane
    std::map<Lane, ActionId> latest;
    std::vector<bool> has_begun(busy_until_s_.size(), false);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      auto const& entry = entries[i];
      if (auto const found = latest.find(entry.lane); found != latest.end()) {
        before[i] = found->second;
      }
      latest[entry.lane] = ActionId(i);
      if (entry.lane.kind != LaneKind::compute) {
        continue;
      }
      auto const device = entry.lane.device.index();
      auto& busy_until_s = busy_until_s_[device];
      if (busy_until_s) {
        trace(graph, entries, before, external, ActionId(i), *busy_until_s, !has_begun[device]);
      }
      has_begun[device] = true;
      busy_until_s = std::max(busy_until_s.value_or(entry.end_s), entry.end_s);
    }
  }

  /// Takes all devices for idle from \p from_s on, where nothing was added before; else a device's
  /// time counts from its first action on.
  void begin(double from_s) { std::ranges::fill(busy_until_s_, from_s); }

  /// Takes all devices for drained from their last action on, until \p until_s.
  void finish(double until_s) {
    for (auto& busy_until_s : busy_until_s_) {
      if (busy_until_s && *busy_until_s < until_s) {
        bubbles_[BubbleCause::drain] += until_s - *busy_until_s;
        busy_until_s = until_s;
      }
    }
  }

  [[nodiscard]] Bubbles const& bubbles() const noexcept { return bubbles_; }

  /// Begins anew with what comes after all that was added.
  void forget() noexcept { bubbles_ = {}; }

 private:
  void trace(ActionGraph const& graph,
             std::span<TimelineEntry const> entries,
             std::vector<std::optional<ActionId>> const& before,
             std::function<External(ActionId)> const& external,
             ActionId id,
             double idle_from_s,
             bool first) {
    auto const device = entries[id.index()].lane.device;
    auto until_s = entries[id.index()].start_s;
    auto const charge = [&](BubbleCause cause, double from_s) {
      from_s = std::max(from_s, idle_from_s);
      if (from_s < until_s) {
        bubbles_[cause] += until_s - from_s;
        until_s = from_s;
      }
    };
    while (until_s > idle_from_s) {
      auto const blocker = last_to_end(graph, entries, before, id);
      auto const waits_for = external(id);
      charge(waits_for == External::host     ? BubbleCause::optimizer_stall
             : waits_for == External::device ? BubbleCause::memory_stall
             : first                         ? BubbleCause::drain
                                             : BubbleCause::dispatch,
             blocker ? entries[blocker->index()].end_s : idle_from_s);
      if (!blocker) {
        return;
      }
      auto const& entry = entries[blocker->index()];
      charge(cause_of(graph, entries, before, *blocker, device, first), entry.start_s);
      id = *blocker;
    }
  }

  /// Of what \p id waited for in its own graph, what ended last.
  static std::optional<ActionId> last_to_end(ActionGraph const& graph,
                                             std::span<TimelineEntry const> entries,
                                             std::vector<std::optional<ActionId>> const& before,
                                             ActionId id) {
    auto latest = before[id.index()];
    for (auto const wait : graph.actions[id.index()].waits) {
      if (!latest || entries[wait.index()].end_s > entries[latest->index()].end_s) {
        latest = wait;
      }
    }
    return latest;
  }

  static BubbleCause cause_of(ActionGraph const& graph,
                              std::span<TimelineEntry const> entries,
                              std::vector<std::optional<ActionId>> const& before,
                              ActionId id,
                              DeviceId device,
                              bool first) {
    auto const& lane = entries[id.index()].lane;
    if (!lane.device.valid()) {
      return BubbleCause::optimizer_stall;
    }
    if (lane.kind == LaneKind::compute) {
      return lane.device == device ? BubbleCause::dispatch
             : first               ? BubbleCause::fill
                                   : BubbleCause::imbalance;
    }
    auto const blocker = last_to_end(graph, entries, before, id);
    return blocker && waits_for_place(graph, id, *blocker) ? BubbleCause::memory_stall
                                                           : BubbleCause::transfer_stall;
  }

  /// Whether \p user used what lay before in an entry of a device's ring that \p copy writes. The
  /// lane's copy before, into the entry next to it, is no such user.
  static bool waits_for_place(ActionGraph const& graph, ActionId copy, ActionId user) {
    auto const& used = graph.actions[user.index()];
    return std::ranges::any_of(graph.actions[copy.index()].writes, [&](Buffer const& written) {
      auto const found = graph.rings.find(written.ring);
      auto const count = found == graph.rings.end() ? 1 : found->second.count;
      auto const is_place = [&](Buffer const& buffer) {
        return buffer.ring == written.ring && buffer.sequence + count <= written.sequence;
      };
      return written.ring.device.valid() && (std::ranges::any_of(used.reads, is_place) ||
                                             std::ranges::any_of(used.writes, is_place));
    });
  }

  std::vector<std::optional<double>> busy_until_s_;  // by device
  Bubbles bubbles_;
};

}  // namespace roundpipe
