// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/core/error.hpp>
#include <roundpipe/plan/busy.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace {

using namespace roundpipe;

TimelineEntry entry(LaneKind kind, DeviceId device, double start_s, double end_s) {
  TimelineEntry result;
  result.lane = {kind, device};
  result.start_s = start_s;
  result.end_s = end_s;
  return result;
}

TimelineEntry compute(int device, double start_s, double end_s) {
  return entry(LaneKind::compute, DeviceId(device), start_s, end_s);
}

}  // namespace

TEST_CASE("A timeline without entries, or without length, keeps no device busy") {
  CHECK(busy_shares({}).empty());
  CHECK(busy_shares({2, {}}) == std::vector{0.0, 0.0});
  CHECK(busy_shares({1, {compute(0, 3, 3)}}) == std::vector{0.0});
}

TEST_CASE("A device's busy share is its compute time over the span of all lanes") {
  Timeline const timeline{3,
                          {entry(LaneKind::parameter_up, DeviceId(1), 10, 12),
                           compute(0, 12, 14),
                           compute(1, 14, 15),
                           compute(0, 15, 16),
                           entry(LaneKind::optimizer, DeviceId::none(), 16, 20)}};
  CHECK(busy_shares(timeline) == std::vector{0.3, 0.1, 0.0});
}

TEST_CASE("Overlapping and nested compute actions of a device count once, in any order") {
  Timeline const timeline{
      1,
      {compute(0, 6, 7), compute(0, 0, 4), compute(0, 1, 2), compute(0, 3, 5), compute(0, 8, 10)}};
  CHECK(busy_shares(timeline).front() == doctest::Approx(0.8));
}

TEST_CASE("Busy shares equal a count over a grid of moments, for random timelines") {
  std::mt19937 random(7);
  auto const draw = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int round = 0; round < 200; ++round) {
    constexpr std::size_t span = 40;
    Timeline timeline{1 + draw(3), {}};
    std::vector<std::vector<bool>> busy(timeline.devices, std::vector<bool>(span));
    timeline.entries.push_back(entry(LaneKind::optimizer, DeviceId::none(), 0, span));
    for (std::size_t i = draw(12); i > 0; --i) {
      auto const device = draw(timeline.devices);
      auto const start = draw(span);
      auto const end = start + draw(span - start) + 1;
      bool const computes = draw(3) > 0;
      timeline.entries.push_back(entry(computes ? LaneKind::compute : LaneKind::activation_up,
                                       DeviceId(device),
                                       static_cast<double>(start),
                                       static_cast<double>(end)));
      for (auto t = start; computes && t < end; ++t) {
        busy[device][t] = true;
      }
    }
    auto const shares = busy_shares(timeline);
    REQUIRE(shares.size() == timeline.devices);
    for (std::size_t device = 0; device < shares.size(); ++device) {
      std::size_t count = 0;
      for (bool const moment : busy[device]) {
        count += moment ? 1 : 0;
      }
      CHECK(shares[device] == doctest::Approx(static_cast<double>(count) / span));
    }
  }
}

TEST_CASE("Entries of unknown devices and entries that end before they start are refused") {
  CHECK_THROWS_AS(static_cast<void>(busy_shares({1, {compute(1, 0, 1)}})), Error);
  CHECK_THROWS_AS(static_cast<void>(busy_shares({1, {compute(0, 2, 1)}})), Error);
}
