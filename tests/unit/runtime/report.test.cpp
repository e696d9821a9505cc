// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/report.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace report_test {

using namespace roundpipe;

namespace {

TimelineEntry entry(LaneKind kind, int device, double start_s, double end_s) {
  TimelineEntry e;
  e.lane = {kind, device < 0 ? DeviceId::none() : DeviceId(device)};
  e.start_s = start_s;
  e.end_s = end_s;
  return e;
}

}  // namespace

TEST_CASE("busy shares count overlapping times of calls once, and no pauses between calls") {
  BusyMeter meter(2);
  meter.add(std::vector{entry(LaneKind::compute, 0, 1, 3), entry(LaneKind::compute, 1, 2, 5)});
  meter.add(std::vector{entry(LaneKind::compute, 0, 4, 6), entry(LaneKind::accumulate, -1, 0, 99)});
  meter.add(std::vector{entry(LaneKind::activation_up, 1, 10, 11)});
  Report report;
  meter.fill(report);
  CHECK(report.training_s == doctest::Approx(5 + 1));
  REQUIRE(report.device_busy.size() == 2);
  CHECK(report.device_busy[0] == doctest::Approx(4.0 / 6));
  CHECK(report.device_busy[1] == doctest::Approx(3.0 / 6));
}

TEST_CASE("a call begins with its earliest action, wherever that stands") {
  BusyMeter meter(2);
  meter.add(std::vector{entry(LaneKind::compute, 1, 2, 3), entry(LaneKind::compute, 0, 1, 2)});
  Report report;
  meter.fill(report);
  CHECK(report.training_s == doctest::Approx(2));
}

TEST_CASE("without any call no device was busy") {
  Report report;
  BusyMeter(1).fill(report);
  CHECK(report.training_s == 0);
  CHECK(report.device_busy.front() == 0);
}

}  // namespace report_test
