// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_backend.hpp>
#include <support/contains.hpp>
#include <support/cuda_workers.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <system_error>
#include <thread>

using namespace roundpipe;
using test::contains;
using test::d0;
using test::d1;
using test::error_of;
using test::one_worker;
using test::two_workers;

TEST_CASE("a CUDA backend names its devices and their budgets") {
  cu::CudaBackend backend(two_workers());
  CHECK(backend.device_count() == 2);
  CHECK(backend.ordinal(d1) == d0);
  auto const properties = backend.device_properties(d1);
  CHECK_FALSE(properties.name.empty());
  CHECK(properties.memory_bytes == 64_MiB);
  CHECK(properties.flops_per_second > 1e12);
  CHECK(properties.memory_bytes_per_second > 1e11);
  CHECK(error_of([&] { (void)backend.device_properties(DeviceId(2)); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([&] { (void)backend.make_stream(d0, LaneKind::optimizer); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("both directions of a link at once carry more than one, and no more than both alone") {
  cu::CudaBackend backend(one_worker());
  auto const properties = backend.device_properties(d0);
  auto const alone = properties.upload_bytes_per_second + properties.download_bytes_per_second;
  CHECK(properties.host_bytes_per_second > 0.5 * alone);
  CHECK(properties.host_bytes_per_second < 1.1 * alone);
}

TEST_CASE("two devices together reach no more in one direction than their links carry" *
          doctest::skip(!test::has_two_devices())) {
  auto options = one_worker();
  options.devices = {d0, d1};
  cu::CudaBackend backend(options);
  auto const first = backend.device_properties(d0);
  auto const second = backend.device_properties(d1);
  auto const up = first.upload_bytes_per_second + second.upload_bytes_per_second;
  auto const down = first.download_bytes_per_second + second.download_bytes_per_second;
  CHECK(first.host_upload_bytes_per_second > 0.3 * up);
  CHECK(first.host_upload_bytes_per_second < 1.1 * up);
  CHECK(first.host_download_bytes_per_second > 0.3 * down);
  CHECK(first.host_download_bytes_per_second < 1.1 * down);
  CHECK(second.host_download_bytes_per_second == first.host_download_bytes_per_second);
}

TEST_CASE("unknown devices, and budgets above the free memory, are refused by name") {
  auto const none = error_of([] {
    cu::CudaBackendOptions options;
    options.devices = {DeviceId(77)};
    cu::CudaBackend const backend(options);
  });
  CHECK(none.code() == Errc::invalid_argument);
  CHECK(contains(none.what(), "no CUDA device 77"));
  auto const large = error_of([] {
    cu::CudaBackendOptions options;
    options.device_memory_bytes = Bytes{1} << 50;
    cu::CudaBackend const backend(options);
  });
  CHECK(large.code() == Errc::over_budget);
  CHECK(large.code() == std::errc::not_enough_memory);
  CHECK(contains(large.what(), "device 0"));
  CHECK(contains(large.what(), "free"));
}

TEST_CASE("after an abort fences release all waiters, nothing is enqueued, and waits throw") {
  for (bool const on_device : {true, false}) {
    CAPTURE(on_device);
    auto options = one_worker();
    options.waits_on_device = on_device;
    cu::CudaBackend backend(options);
    auto stream = backend.make_stream(d0, LaneKind::compute);
    auto fence = backend.make_fence();
    auto event = backend.make_event(d0);
    std::thread stopper([&] { backend.abort(); });
    stream.wait(fence, 1'000'000);
    stream.record(event);
    stopper.join();
    CHECK(error_of([&] { event.wait(); }).code() == Errc::aborted);
    CHECK(error_of([&] { stream.synchronize(); }).code() == Errc::aborted);
    auto late = backend.make_fence();
    stream.wait(late, 5);
    CHECK(error_of([&] { stream.synchronize(); }).code() == Errc::aborted);
  }
}
