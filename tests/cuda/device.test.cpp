// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/device.hpp>

#include <roundpipe/cuda/device/driver_function.hpp>
#include <support/error_of.hpp>

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <system_error>

using namespace roundpipe;
using cu::detail::DeviceAnswer;
using cu::detail::usable_devices;
using test::error_of;

TEST_CASE("a function that the driver does not have is null") {
  auto const found = cu::detail::driver_function<void (*)()>("cuNoSuchFunction", 12000);
  CHECK((found == nullptr));
}

TEST_CASE("a process without device work has no context") {
  CHECK_FALSE(cu::has_context(DeviceId(0)));
  CHECK_FALSE(cu::has_context(DeviceId(999)));
}

TEST_CASE("devices that the runtime counts are usable with any versions") {
  CHECK(usable_devices({cudaSuccess, 1, 13000, 13000}) == 1);
  CHECK(usable_devices({cudaSuccess, 8, 14020, 13000}) == 8);
}

TEST_CASE("a driver that is too old is reported with its version and the program's") {
  auto const error = error_of(
      [] { static_cast<void>(usable_devices({cudaErrorInsufficientDriver, 0, 12040, 13010})); });
  CHECK(error.code() == std::errc::no_such_device);
  CHECK(error.message() ==
        "the CUDA driver is too old: it supports CUDA 12.4, and this program was built with 13.1");
}

TEST_CASE("a missing driver and a missing device are different errors") {
  auto const driver = error_of(
      [] { static_cast<void>(usable_devices({cudaErrorInsufficientDriver, 0, 0, 13000})); });
  CHECK(driver.code() == std::errc::no_such_device);
  CHECK(driver.message() == "there is no CUDA driver on this machine");
  for (auto const status : {cudaErrorNoDevice, cudaSuccess}) {
    auto const device =
        error_of([&] { static_cast<void>(usable_devices({status, 0, 13000, 13000})); });
    CHECK(device.code() == std::errc::no_such_device);
    CHECK(device.message() == "there is no CUDA device on this machine");
  }
}

TEST_CASE("other failures to count devices keep their names") {
  auto const error = error_of(
      [] { static_cast<void>(usable_devices({cudaErrorSystemNotReady, 0, 13000, 13000})); });
  CHECK(error.code() == cu::make_error_code(cudaErrorSystemNotReady));
}
