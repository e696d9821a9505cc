// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/simulate/link_fit.hpp>

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace link_fit_test {

namespace {

using namespace roundpipe;

TimelineEntry copy(LaneKind lane, std::size_t device, double start_s, double end_s) {
  TimelineEntry entry;
  entry.lane = {lane, DeviceId(device)};
  entry.bytes = 30;
  entry.start_s = start_s;
  entry.end_s = end_s;
  return entry;
}

}  // namespace

TEST_CASE("rates change by the bytes copied in a second of copying, each direction by its own") {
  // Uploads: 60 bytes in the 6 s in which a copy runs on device 0, 30 in 4 s on device 1.
  Timeline const measured{2,
                          {copy(LaneKind::save_up, 0, 1, 5),
                           copy(LaneKind::parameter_up, 0, 3, 7),
                           copy(LaneKind::activation_up, 1, 0, 4),
                           copy(LaneKind::gradient_down, 0, 0, 2)}};
  // 30 in 2.25 s: 13.3 where 9 were measured; down 10 where 15 were measured.
  Timeline const simulated{
      2, {copy(LaneKind::save_up, 0, 0, 2.25), copy(LaneKind::save_down, 1, 7, 10)}};
  LinkModel link{40, 20};
  link.root_upload_bytes_per_second = 80;
  link.root_download_bytes_per_second = 60;
  link.host_bytes_per_second = 100;
  link.host_download_weight = 3;
  auto const fitted = fit_link(link, measured, simulated);
  CHECK(fitted.upload_bytes_per_second == doctest::Approx(40 * 0.675));
  CHECK(fitted.download_bytes_per_second == doctest::Approx(20 * 1.5));
  CHECK(fitted.root_upload_bytes_per_second == doctest::Approx(80 * 0.675));
  CHECK(fitted.root_download_bytes_per_second == doctest::Approx(60 * 1.5));
  CHECK(fitted.host_bytes_per_second == doctest::Approx(25 * 0.675 + 75 * 1.5));
  CHECK(fitted.host_download_weight == doctest::Approx(75 * 1.5 / (25 * 0.675)));
}

TEST_CASE("a direction without copies keeps its rate, and what is unlimited stays so") {
  Timeline const measured{1, {copy(LaneKind::save_up, 0, 0, 1), copy(LaneKind::compute, 0, 0, 9)}};
  LinkModel const link{0, 20};
  for (auto const& fitted :
       {fit_link(link, measured, measured), fit_link(link, measured, {1, {}})}) {
    CHECK(fitted.upload_bytes_per_second == 0);
    CHECK(fitted.download_bytes_per_second == 20);
    CHECK(fitted.host_bytes_per_second == 0);
    CHECK(fitted.host_download_weight == 1);
  }
}

}  // namespace link_fit_test
