// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/shared_speed.hpp>

#include <roundpipe/concepts/backend.hpp>

#include <doctest/doctest.h>

#include <array>

using namespace roundpipe;

TEST_CASE("all devices share one speed, and keep what is their own") {
  std::array<DeviceProperties, 2> devices;
  devices[1].upload_bytes_per_second = 7;
  cu::set_shared_speed(devices, {90, 0.75, 0.5, 10});
  for (auto const& device : devices) {
    CHECK(device.host_bytes_per_second == 90);
    CHECK(device.upload_share_beside_work == 0.75);
    CHECK(device.download_share_beside_work == 0.5);
    CHECK(device.host_work_bytes_per_second == 10);
  }
  CHECK(devices[0].upload_bytes_per_second == 0);
  CHECK(devices[1].upload_bytes_per_second == 7);
}
