// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/peer_access.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace cu = roundpipe::cu;
using roundpipe::DeviceId;
using roundpipe::DeviceProperties;

TEST_CASE("a device that is named twice reaches itself, which takes no call of CUDA") {
  std::vector<DeviceId> const twice{DeviceId(0), DeviceId(0)};
  CHECK(cu::open_to_peers(twice));
  std::vector<DeviceProperties> properties(2);
  cu::set_peers(properties, {.devices = twice}, nullptr);
  for (auto const& device : properties) {
    CHECK(device.reaches_peers);
    CHECK(device.peer_bytes_per_second == 0);  // not measured
  }
}

TEST_CASE("one device has no peers, and options may want none") {
  std::vector<DeviceProperties> properties(2);
  cu::set_peers(properties, {.devices = {DeviceId(0)}}, nullptr);
  cu::set_peers(
      properties, {.devices = {DeviceId(0), DeviceId(0)}, .reaches_peers = false}, nullptr);
  CHECK_FALSE(properties[0].reaches_peers);
  CHECK_FALSE(properties[1].reaches_peers);
}
