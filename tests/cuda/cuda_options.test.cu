// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/cuda_options.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <support/cuda_workers.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>

using namespace roundpipe;
using test::d0;
using test::error_of;
using test::one_worker;
using test::two_workers;

TEST_CASE("backends keep their resources apart unless they are told to share them") {
  struct Count {
    int value = 0;
  };
  cu::CudaBackend first(one_worker());
  cu::CudaBackend second(one_worker());
  auto options = one_worker();
  options.resources = std::make_shared<cu::CudaResources>();
  cu::CudaBackend third(options);
  cu::CudaBackend fourth(options);
  first.resources().get<Count>().value = 1;
  third.resources().get<Count>().value = 3;
  CHECK(first.resources().get<Count>().value == 1);
  CHECK(second.resources().get<Count>().value == 0);
  CHECK(fourth.resources().get<Count>().value == 3);
  CHECK(&first.make_stream(d0, LaneKind::compute).resources() == &first.resources());
  CHECK(&fourth.make_stream(d0, LaneKind::compute).resources() == options.resources.get());
}

TEST_CASE("a stream of another device is refused") {
  if (cu::device_count() < 2) {
    MESSAGE("one device: left out");
    return;
  }
  cu::Stream const of_first;
  cu::CudaBackendOptions options;
  options.devices = {DeviceId(1)};
  options.device_memory_bytes = 1_MiB;
  options.stream = [&](DeviceId, LaneKind) { return of_first.get(); };
  cu::CudaBackend backend(options);
  auto const error = error_of([&] { (void)backend.make_stream(d0, LaneKind::compute); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message().find("CUDA's device 1, is one of CUDA's device 0") != std::string::npos);
}

TEST_CASE("the first devices are those that the process sees, and no more") {
  auto const count = cu::device_count();
  auto const all = cu::first_devices(count);
  REQUIRE(all.size() == count);
  CHECK(all.front() == d0);
  CHECK(all.back() == DeviceId(count - 1));
  CHECK(cu::first_devices(0).empty());
  auto const few = error_of([] { (void)cu::first_devices(1000); });
  CHECK(few.code() == Errc::invalid_argument);
  CHECK(few.message().find("1000 CUDA devices are asked for") != std::string::npos);
}
