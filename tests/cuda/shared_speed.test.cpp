// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/shared_speed.hpp>

#include <roundpipe/concepts/backend.hpp>

#include <doctest/doctest.h>

#include <array>

using namespace roundpipe;

TEST_CASE("all devices share one speed, and keep what is their own") {
  std::array<DeviceProperties, 2> devices;
  devices[0].upload_bytes_per_second = 64;
  devices[0].download_bytes_per_second = 40;  // less than the copies below: noise
  devices[1].upload_bytes_per_second = 56;
  devices[1].download_bytes_per_second = 56;
  cu::set_shared_speed(devices, {{48, 49}, {32, 48}, 2, {50, 51}, 0.75, 0.5, 10});
  for (auto const& device : devices) {
    CHECK(device.host_upload_bytes_per_second == 100);
    CHECK(device.host_download_bytes_per_second == 102);
    CHECK(device.host_bytes_per_second == 160);
    CHECK(device.host_download_weight == 1.5);
    CHECK(device.upload_share_beside_work == 0.75);
    CHECK(device.download_share_beside_work == 0.5);
    CHECK(device.host_work_bytes_per_second == 10);
  }
  CHECK(devices[0].upload_bytes_per_second == 64);
  CHECK(devices[0].upload_share_both_ways == 0.75);
  CHECK(devices[0].download_share_both_ways == 1);
  CHECK(devices[1].download_share_both_ways == 0.875);
}
