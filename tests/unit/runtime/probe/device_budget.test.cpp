// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/probe/device_budget.hpp>

#include <roundpipe/backend/host_backend.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace device_budget_test {
namespace {

using namespace roundpipe;

HostBackendOptions three_devices() {
  HostBackendOptions options;
  options.devices = 3;
  options.device_memory_bytes = 5_MiB;
  return options;
}

/// A higher device number means a lower limit for slabs.
struct Uneven : HostBackend {
  using HostBackend::HostBackend;
  [[nodiscard]] DeviceProperties device_properties(DeviceId device) const {
    auto properties = HostBackend::device_properties(device);
    properties.memory_bytes -= device.index() * 1_MiB;
    return properties;
  }
};

/// A process that holds 1 MiB of device 0, 2 MiB of device 1 and so on.
struct Held : HostBackend {
  using HostBackend::HostBackend;
  [[nodiscard]] Bytes overhead_bytes(DeviceId device) const { return (device.index() + 1) * 1_MiB; }
};

/// A process whose layers load 512 KiB of code when they first run.
struct LoadsCode : Held {
  using Held::Held;
  static constexpr Bytes unloaded_code_bytes = 512_KiB;
};

template <class B>
DeviceBudget budget(std::size_t devices, Bytes bytes, bool code_is_loaded = true) {
  B backend(three_devices());
  return device_budget(backend, devices, bytes, code_is_loaded);
}

}  // namespace

TEST_CASE("without a budget a plan takes what the device with least memory has for slabs") {
  CHECK(budget<Uneven>(3, 0).free() == 3_MiB);
  CHECK(budget<Uneven>(2, 0).free() == 4_MiB);
  CHECK(budget<Held>(3, 0).free() == 5_MiB);
  CHECK(budget<Held>(3, 0).held == 0);
}

TEST_CASE("a budget counts what the process holds besides a plan") {
  CHECK(budget<HostBackend>(3, 4_MiB).free() == 4_MiB);
  auto const two = budget<Held>(2, 4_MiB);
  CHECK(two.bytes == 4_MiB);
  CHECK(two.held == 2_MiB);
  CHECK(two.free() == 2_MiB);
  CHECK(budget<Held>(3, 2_MiB).free() == 0);
}

TEST_CASE("a budget counts code that is still to be loaded, where the backend knows of any") {
  CHECK(budget<LoadsCode>(1, 4_MiB, false).held == 1_MiB + 512_KiB);
  CHECK(budget<LoadsCode>(1, 4_MiB, true).held == 1_MiB);
  CHECK(budget<LoadsCode>(1, 0, false).free() == 5_MiB);  // no budget, nothing counts
  CHECK(budget<Held>(1, 4_MiB, false).held == 1_MiB);
}

TEST_CASE("a budget does not lift the backend's limit for slabs") {
  CHECK(budget<Uneven>(2, 1_GiB).free() == 4_MiB);
  CHECK(budget<Held>(1, 1_GiB).free() == 5_MiB);
}

}  // namespace device_budget_test
