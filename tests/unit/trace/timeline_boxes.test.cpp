// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/trace/timeline_boxes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace timeline_boxes_test {

namespace {

using namespace roundpipe;
using detail::boxes_of;
using detail::idle_between;
using detail::Stretch;
using detail::TimelineBox;

Lane const compute{LaneKind::compute, DeviceId(0)};

TimelineEntry action(int layer, double start_s, double end_s) {
  TimelineEntry entry;
  entry.kind = ActionKind::backward;
  entry.lane = compute;
  entry.stage = StageId(1);
  entry.round = RoundId(0);
  entry.micro_batch = MicroBatchId(2);
  entry.layer = LayerId(layer);
  entry.start_s = start_s;
  entry.end_s = end_s;
  return entry;
}

std::vector<TimelineBox> boxes(std::vector<TimelineEntry> entries,
                               double from_s = 0,
                               double to_s = 100,
                               double unseen_s = 0.1) {
  auto result = boxes_of({1, std::move(entries)}, from_s, to_s, unseen_s);
  return result[compute];
}

}  // namespace

TEST_CASE("The layers of a task are one box, in any order") {
  auto const one = boxes({action(5, 1, 2), action(4, 2, 3), action(3, 3.05, 4)});
  REQUIRE(one.size() == 1);
  CHECK(one[0].first_layer == LayerId(3));
  CHECK(one[0].last_layer == LayerId(5));
  CHECK(one[0].start_s == 1);
  CHECK(one[0].end_s == 4);
  CHECK(one[0].kind == ActionKind::backward);
  CHECK(one[0].micro_batch == MicroBatchId(2));
  CHECK(boxes({action(3, 3.05, 4), action(5, 1, 2), action(4, 2, 3)}).size() == 1);
  auto const upwards = boxes({action(3, 1, 2), action(4, 2, 3)});
  REQUIRE(upwards.size() == 1);
  CHECK(upwards[0].first_layer == LayerId(3));
  CHECK(upwards[0].last_layer == LayerId(4));
}

TEST_CASE("Actions that differ in any field of the task are separate boxes") {
  auto const next = action(4, 2, 3);
  REQUIRE(boxes({action(5, 1, 2), next}).size() == 1);
  auto other = next;
  other.graph = 1;
  CHECK(boxes({action(5, 1, 2), other}).size() == 2);
  other = next;
  other.kind = ActionKind::recompute;
  CHECK(boxes({action(5, 1, 2), other}).size() == 2);
  other = next;
  other.stage = StageId(2);
  CHECK(boxes({action(5, 1, 2), other}).size() == 2);
  other = next;
  other.round = RoundId(1);
  CHECK(boxes({action(5, 1, 2), other}).size() == 2);
  other = next;
  other.micro_batch = MicroBatchId(3);
  CHECK(boxes({action(5, 1, 2), other}).size() == 2);
}

TEST_CASE("A task with a visible pause is two boxes with idle time between") {
  auto const two = boxes({action(5, 1, 2), action(4, 2.5, 3)});
  REQUIRE(two.size() == 2);
  CHECK(two[0].last_layer == LayerId(5));
  CHECK(two[1].last_layer == LayerId(4));
  CHECK(idle_between(two, 1, 3, 0.1) == std::vector<Stretch>{{2, 2.5}});
}

TEST_CASE("Boxes end at the edge of the picture; actions outside, or without duration, have none") {
  auto const seen =
      boxes({action(5, 0, 2), action(4, 2, 8), action(3, 8, 9), action(2, 4, 4)}, 3, 7);
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].start_s == 3);
  CHECK(seen[0].end_s == 7);
  CHECK(seen[0].first_layer == LayerId(4));
  CHECK(seen[0].last_layer == LayerId(4));
}

TEST_CASE("Lanes are kept apart") {
  auto elsewhere = action(4, 2, 3);
  elsewhere.lane.device = DeviceId(1);
  auto const both = boxes_of({2, {action(5, 1, 2), elsewhere}}, 0, 10, 0.1);
  CHECK(both.size() == 2);
}

TEST_CASE("A lane without boxes is idle from end to end") {
  CHECK(idle_between({}, 1, 3, 0.1) == std::vector<Stretch>{{1, 3}});
  CHECK(idle_between({}, 1, 1.05, 0.1).empty());
}

TEST_CASE("Boxes and idle time cover the whole time, and every busy instant is in a box") {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    // Times are whole numbers: each second is completely busy or completely idle. Some actions
    // overlap.
    std::vector<bool> is_busy(200, false);
    std::vector<TimelineEntry> entries;
    for (int i = 0; i < 30; ++i) {
      auto const start = static_cast<std::size_t>(random() % 180);
      auto const end = start + random() % 8;
      entries.push_back(action(i, static_cast<double>(start), static_cast<double>(end)));
      entries.back().micro_batch = MicroBatchId(random() % 3);
      for (auto s = start; s < end; ++s) {
        is_busy[s] = true;
      }
    }
    auto const drawn = boxes(entries, 20, 160, 0.5);
    auto const idle = idle_between(drawn, 20, 160, 0.5);
    for (std::size_t s = 20; s < 160; ++s) {
      auto const middle_s = static_cast<double>(s) + 0.5;
      auto const holds = [&](auto const& stretch) {
        return stretch.start_s < middle_s && middle_s < stretch.end_s;
      };
      CHECK(std::ranges::any_of(drawn, holds) == is_busy[s]);
      CHECK(std::ranges::any_of(idle, holds) == !is_busy[s]);
    }
  }
}

TEST_CASE("The span of a timeline covers the actions with a duration on the selected lanes") {
  auto elsewhere = action(4, 0, 30);
  elsewhere.lane.kind = LaneKind::parameter_up;
  Timeline const timeline{1, {action(5, 4, 5), action(3, 2, 3), elsewhere, action(1, 50, 50)}};
  auto const wanted = [](Lane const& lane) { return lane == compute; };
  CHECK(detail::span_of(timeline, wanted) == Stretch{2, 5});
  CHECK(detail::span_of(timeline, [](Lane const&) { return true; }) == Stretch{0, 30});
  CHECK(detail::span_of({}, wanted) == Stretch{0, 0});
}

}  // namespace timeline_boxes_test
