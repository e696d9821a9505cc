// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/bubble/bubble_trace.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace bubble_trace_test {

namespace {

using namespace roundpipe;
using enum BubbleCause;
using Seconds = std::map<BubbleCause, double>;

Lane const own{LaneKind::compute, DeviceId{0}};
Lane const other{LaneKind::compute, DeviceId{1}};
Lane const copies{LaneKind::activation_up, DeviceId{0}};
Lane const host{LaneKind::optimizer, DeviceId::none()};

/// Where and when an action ran, and the actions that it waited for.
struct Run {
  Lane lane;
  double start_s = 0;
  double end_s = 0;
  std::vector<std::size_t> waits{};
  std::optional<std::size_t> before{};
  std::size_t graph = 1;
};

struct View {
  Run const& entry(std::size_t i) const { return runs[i]; }
  std::optional<std::size_t> before(std::size_t i) const { return runs[i].before; }
  std::vector<std::size_t> const& waits(std::size_t i) const { return runs[i].waits; }
  bool waits_for_place(std::size_t i, std::size_t j) const { return place == std::pair{i, j}; }
  BubbleCause rest(std::size_t i, bool first) const {
    return first ? drain : i == 1 ? optimizer_stall : dispatch;
  }

  std::vector<Run> runs;
  std::pair<std::size_t, std::size_t> place{};  // a copy, and the former user of its place
};

/// What the last action of \p view waited for since \p idle_from_s.
Seconds trace(View const& view, double idle_from_s, bool first = false) {
  Bubbles bubbles;
  detail::trace_bubble(view, view.runs.size() - 1, idle_from_s, first, bubbles);
  Seconds result;
  for (std::size_t i = 0; i < bubble_cause_count; ++i) {
    if (auto const cause = static_cast<BubbleCause>(i); bubbles[cause] != 0) {
      result[cause] = bubbles[cause];
    }
  }
  return result;
}

}  // namespace

TEST_CASE("the last to end is the action before on the lane, unless a wait ended later") {
  View view{{{own, 0, 2}, {copies, 0, 4}, {host, 0, 3}, {other, 0, 4}, {own, 4, 5, {2}, 0}}};
  auto& run = view.runs[4];
  CHECK(detail::last_to_end(view, 0) == std::nullopt);
  CHECK(detail::last_to_end(view, 4) == 2U);
  run.waits = {2, 1, 0};
  CHECK(detail::last_to_end(view, 4) == 1U);
  run.before = 3;
  CHECK(detail::last_to_end(view, 4) == 3U);
}

TEST_CASE("idle time has the cause of the work that the device waited for") {
  auto const cause_of = [](Lane lane, bool first, std::size_t graph = 1) {
    return trace({{{lane, 0, 4, {}, {}, graph}, {own, 4, 5, {0}}}}, 1, first);
  };
  CHECK(cause_of(other, false) == Seconds{{imbalance, 3}});
  CHECK(cause_of(other, true) == Seconds{{fill, 3}});
  CHECK(cause_of(other, true, 0) == Seconds{{drain, 3}});
  CHECK(cause_of(own, true) == Seconds{{dispatch, 3}});
  CHECK(cause_of(copies, true) == Seconds{{transfer_stall, 3}});
  CHECK(cause_of(host, true) == Seconds{{optimizer_stall, 3}});
}

TEST_CASE("a copy is a memory stall if it waited last for its place") {
  View view{{{own, 0, 1}, {other, 0, 2}, {copies, 2, 4, {0, 1}}, {own, 4, 5, {2}}}, {2, 1}};
  CHECK(trace(view, 1) == Seconds{{memory_stall, 2}, {imbalance, 1}});
  view.place = {2, 0};
  CHECK(trace(view, 1) == Seconds{{transfer_stall, 2}, {imbalance, 1}});
}

TEST_CASE("the trace goes back through all waits, and the view names the time between them") {
  View const view{{{other, 0, 2}, {copies, 3, 5, {0}}, {own, 7, 8, {1}}}};
  CHECK(trace(view, 1) ==
        Seconds{{dispatch, 2}, {transfer_stall, 2}, {optimizer_stall, 1}, {imbalance, 1}});
  CHECK(trace(view, 4) == Seconds{{dispatch, 2}, {transfer_stall, 1}});
  CHECK(trace(view, 7).empty());
  CHECK(trace({{{own, 7, 8}}}, 1, true) == Seconds{{drain, 6}});  // no wait is known
}

TEST_CASE("work that overlaps what waited for it counts once") {
  CHECK(trace({{{other, 0, 3}, {copies, 2, 5, {0}}, {own, 4, 6, {1}}}}, 1) ==
        Seconds{{transfer_stall, 2}, {imbalance, 1}});
}

}  // namespace bubble_trace_test
