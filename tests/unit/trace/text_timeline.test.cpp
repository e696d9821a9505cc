// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/trace/text_timeline.hpp>

#include <doctest/doctest.h>

#include <sstream>
#include <string>

namespace text_timeline_test {

using namespace roundpipe;

namespace {

TimelineEntry entry(Lane lane, ActionKind kind, double start_s, double end_s) {
  TimelineEntry result;
  result.lane = lane;
  result.kind = kind;
  result.start_s = start_s;
  result.end_s = end_s;
  return result;
}

char by_kind(TimelineEntry const& drawn) {
  return drawn.kind == ActionKind::forward    ? 'f'
         : drawn.kind == ActionKind::backward ? 'b'
                                              : char{0};
}

}  // namespace

TEST_CASE("a lane is a row, and each column shows the action that takes most of its time") {
  Lane const compute{LaneKind::compute, DeviceId(1)};
  Timeline const timeline{2,
                          {entry(compute, ActionKind::forward, 0, 2.6),
                           entry(compute, ActionKind::backward, 2.6, 4),
                           entry(compute, ActionKind::forward, 5.6, 6),
                           entry({LaneKind::optimizer, {}}, ActionKind::optimizer_step, 0, 8)}};
  std::ostringstream out;
  write_text_timeline(out, timeline, {0, 8, 8, by_kind});
  CHECK(out.str() == "device 1 compute    fffb....\n");  // lanes that draw nothing have no row
}

TEST_CASE("times of one kind add up in a column, and the kind with most time is drawn") {
  Lane const lane{LaneKind::compute, DeviceId(0)};
  Timeline const timeline{1,
                          {entry(lane, ActionKind::forward, 0, 0.3),
                           entry(lane, ActionKind::forward, 0.3, 0.6),
                           entry(lane, ActionKind::backward, 1, 1.9),  // at the same time as
                           entry(lane, ActionKind::forward, 1, 1.6)}};
  std::ostringstream out;
  write_text_timeline(out, timeline, {0, 2, 2, by_kind});
  CHECK(out.str() == "device 0 compute    fb\n");
}

TEST_CASE("actions outside the window are not drawn") {
  Lane const compute{LaneKind::compute, DeviceId(0)};
  Timeline const timeline{1,
                          {entry(compute, ActionKind::forward, 0, 1),
                           entry(compute, ActionKind::backward, 1, 3),
                           entry(compute, ActionKind::forward, 3, 9)}};
  std::ostringstream out;
  write_text_timeline(out, timeline, {1, 4, 3, by_kind});
  CHECK(out.str() == "device 0 compute    bbf\n");
}

}  // namespace text_timeline_test
