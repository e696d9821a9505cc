// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/device.hpp>

#include <doctest/doctest.h>

#include <cstddef>

using namespace roundpipe;

TEST_CASE("the driver reports the links between devices") {
  auto const devices = cu::device_count();
  for (std::size_t a = 0; a < devices; ++a) {
    for (std::size_t b = 0; b < devices; ++b) {
      CHECK(cu::can_access_peer(DeviceId(a), DeviceId(b)) ==
            cu::can_access_peer(DeviceId(b), DeviceId(a)));
    }
  }
}
