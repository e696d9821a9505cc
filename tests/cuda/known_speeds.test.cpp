// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/known_speeds.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace roundpipe;

TEST_CASE("the speed of a link, and of devices together, is measured once") {
  cu::KnownSpeeds speeds;
  int measured = 0;
  auto const link = [&](DeviceId device) {
    return cu::LinkSpeed{static_cast<double>(++measured), 100.0 + device.value()};
  };
  CHECK(speeds.link(DeviceId(0), link).upload_bytes_per_second == 1);
  CHECK(speeds.link(DeviceId(1), link).upload_bytes_per_second == 2);
  CHECK(speeds.link(DeviceId(0), link).upload_bytes_per_second == 1);
  CHECK(speeds.link(DeviceId(1), link).download_bytes_per_second == 101);
  auto const together = [&](std::vector<DeviceId> const& devices) {
    ++measured;
    return cu::SharedSpeed{.of_one = {}, .of_each = {}, .devices = devices.size()};
  };
  CHECK(speeds.shared({DeviceId(0), DeviceId(1)}, together).devices == 2);
  CHECK(speeds.shared({DeviceId(0)}, together).devices == 1);
  CHECK(speeds.shared({DeviceId(0), DeviceId(1)}, together).devices == 2);
  CHECK(measured == 4);
}

TEST_CASE("a measurement that fails is repeated") {
  cu::KnownSpeeds speeds;
  auto const fail = [](DeviceId) -> cu::LinkSpeed { throw Error(Errc::over_budget, "no memory"); };
  CHECK_THROWS_AS((void)speeds.link(DeviceId(0), fail), Error);
  auto const works = [](DeviceId) { return cu::LinkSpeed{3, 4}; };
  CHECK(speeds.link(DeviceId(0), works).download_bytes_per_second == 4);
}
