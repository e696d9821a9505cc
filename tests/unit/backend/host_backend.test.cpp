// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/backend/host_backend.hpp>

#include <support/contains.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace host_backend_test {

namespace {

using namespace roundpipe;
using test::contains;
using test::error_of;

DeviceId const d0{0};
DeviceId const d1{1};

HostBackendOptions two_devices() {
  HostBackendOptions options;
  options.devices = 2;
  return options;
}

}  // namespace

TEST_CASE("a host backend has the properties of its options") {
  auto options = two_devices();
  options.device_memory_bytes = 3_MiB;
  options.link = {.upload_bytes_per_second = 5e9,
                  .download_bytes_per_second = 4e9,
                  .peer_bytes_per_second = 8e9};
  options.root_bytes_per_second = 6e9;
  options.reaches_peers = true;
  options.flops_per_second = 7e11;
  HostBackend const backend(options);
  CHECK(backend.device_count() == 2);
  auto const properties = backend.device_properties(d1);
  CHECK(properties.name == "host device 1");
  CHECK(properties.memory_bytes == 3_MiB);
  CHECK(properties.flops_per_second == 7e11);
  CHECK(properties.host_bytes_per_second == 6e9);
  CHECK(properties.upload_bytes_per_second == 5e9);
  CHECK(properties.download_bytes_per_second == 4e9);
  CHECK(properties.peer_bytes_per_second == 8e9);
  CHECK(properties.reaches_peers);
}

TEST_CASE("invalid options are refused") {
  auto const code_of = [](auto change) {
    HostBackendOptions options;
    change(options);
    return error_of([&] { HostBackend const backend(options); }).code();
  };
  auto const nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(code_of([](auto& o) { o.devices = 0; }) == Errc::invalid_argument);
  CHECK(code_of([](auto& o) { o.link.upload_bytes_per_second = -1; }) == Errc::invalid_argument);
  CHECK(code_of([&](auto& o) { o.link.download_bytes_per_second = nan; }) ==
        Errc::invalid_argument);
  CHECK(code_of([](auto& o) { o.link.latency_seconds = -1; }) == Errc::invalid_argument);
  CHECK(code_of([](auto& o) { o.link.latency_seconds = 1e300; }) == Errc::invalid_argument);
  CHECK(code_of([](auto& o) { o.root_bytes_per_second = -1; }) == Errc::invalid_argument);
  CHECK(code_of([](auto&) {}) == std::error_code{});
}

TEST_CASE("unknown devices and host lanes are refused") {
  HostBackend backend(two_devices());
  auto const code = [](auto&& f) { return error_of(f).code(); };
  for (auto const device : {DeviceId{2}, DeviceId::none()}) {
    CHECK(code([&] { (void)backend.device_properties(device); }) == Errc::invalid_argument);
    CHECK(code([&] { (void)backend.make_stream(device, LaneKind::compute); }) ==
          Errc::invalid_argument);
    CHECK(code([&] { (void)backend.make_event(device); }) == Errc::invalid_argument);
    CHECK(code([&] { (void)backend.allocate_device(device, 1); }) == Errc::invalid_argument);
  }
  CHECK(code([&] { (void)backend.make_stream(d0, LaneKind::accumulate); }) ==
        Errc::invalid_argument);
  CHECK(code([&] { (void)backend.make_stream(d0, LaneKind::optimizer); }) ==
        Errc::invalid_argument);
}

TEST_CASE("device slabs are aligned and full of NaNs, host slabs are aligned and zero") {
  HostBackend backend;
  auto const device = backend.allocate_device(d0, 1000);
  auto const host = backend.allocate_host(1000);
  auto const* const of_device = device.bytes().device_pointer();
  CHECK(device.bytes().size() == 1000);
  CHECK(host.bytes().size() == 1000);
  CHECK(reinterpret_cast<std::uintptr_t>(of_device) % 256 == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(host.bytes().data()) % 256 == 0);
  CHECK(std::all_of(of_device, of_device + 1000, [](auto b) { return b == std::byte{0xFF}; }));
  CHECK(std::ranges::all_of(host.bytes(), [](auto b) { return b == std::byte{0}; }));
  CHECK(backend.allocate_device(d0, 0).bytes().empty());
  CHECK(backend.allocate_host(0).bytes().empty());
}

TEST_CASE("each device has its own budget, and no slab may exceed it") {
  auto options = two_devices();
  options.device_memory_bytes = 3_MiB;
  HostBackend backend(options);
  auto first = backend.allocate_device(d0, 2_MiB);
  auto const error = error_of([&] { (void)backend.allocate_device(d0, 2_MiB); });
  CHECK(error.code() == std::errc::not_enough_memory);
  CHECK(contains(error.message(), "host device 0"));
  CHECK(contains(error.message(), "2.00 MiB wanted, 1.00 MiB left"));
  auto const rest = backend.allocate_device(d0, 1_MiB);
  auto const other = backend.allocate_device(d1, 3_MiB);
  first = {};
  auto const again = backend.allocate_device(d0, 2_MiB);
  CHECK(error_of([&] { (void)backend.allocate_device(d0, 1); }).code() ==
        std::errc::not_enough_memory);
}

TEST_CASE("the options may limit host memory; otherwise the machine does") {
  HostBackendOptions options;
  options.host_memory_bytes = 1_MiB;
  HostBackend const tight(options);
  CHECK(error_of([&] { (void)tight.allocate_host(1_MiB + 1); }).code() ==
        std::errc::not_enough_memory);
  auto const slab = tight.allocate_host(1_MiB);
}

TEST_CASE("slabs can be moved and return their bytes once") {
  HostBackendOptions options;
  options.device_memory_bytes = 1_MiB;
  HostBackend backend(options);
  for (int i = 0; i < 3; ++i) {
    auto slab = backend.allocate_device(d0, 1_MiB);
    auto* const pointer = slab.bytes().device_pointer();
    auto other = std::move(slab);
    CHECK(slab.bytes().empty());
    CHECK(other.bytes().device_pointer() == pointer);
    slab = std::move(other);
    CHECK(slab.bytes().device_pointer() == pointer);
  }
  auto const whole = backend.allocate_device(d0, 1_MiB);  // bytes that came back twice would allow
  CHECK(error_of([&] { (void)backend.allocate_device(d0, 1); }).code() == Errc::over_budget);
}

TEST_CASE("releasing a slab while work on it is pending is safe") {
  HostBackendOptions options;
  options.device_memory_bytes = 1_MiB;
  HostBackend backend(options);
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto gate = backend.make_fence();
  stream.wait(gate, 1);
  {
    auto const device = backend.allocate_device(d0, 1_MiB);
    auto const host = backend.allocate_host(1_MiB);
    stream.fill(device.bytes(), std::byte{1});
    stream.copy(host.bytes(), device.bytes());
  }
  gate.signal(1);
  stream.synchronize();
  auto const after = backend.allocate_device(d0, 1_MiB);
}

TEST_CASE("abort releases streams and host threads that wait for events and fences") {
  HostBackend backend(two_devices());
  auto stuck = backend.make_stream(d0, LaneKind::compute);
  auto behind = backend.make_stream(d1, LaneKind::compute);
  auto fence = backend.make_fence();
  auto event = backend.make_event(d0);
  bool ran = false;
  stuck.wait(fence, 1);
  stuck.launch([&] { ran = true; });
  stuck.record(event);
  behind.wait(event);
  behind.launch([&] { ran = true; });

  std::vector<std::optional<Error>> caught(3);
  std::vector<std::thread> threads;
  for (auto& result : caught) {
    threads.emplace_back([&] { result = error_of([&] { event.wait(); }); });
  }
  backend.abort();
  for (auto& thread : threads) {
    thread.join();
  }
  for (auto const& result : caught) {
    REQUIRE(result.has_value());
    CHECK(result->code() == Errc::aborted);
    CHECK(result->code() == std::errc::operation_canceled);
  }
  CHECK(error_of([&] { stuck.synchronize(); }).code() == Errc::aborted);
  CHECK(error_of([&] { behind.synchronize(); }).code() == Errc::aborted);
  CHECK(!ran);
}

TEST_CASE("an abort is final") {
  HostBackend backend;
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto fence = backend.make_fence();
  auto complete = backend.make_event(d0);
  auto unrecorded = backend.make_event(d0);
  stream.record(complete);
  complete.wait();
  backend.abort();
  backend.abort();
  bool ran = false;
  stream.wait(fence, 1);
  stream.launch([&] { ran = true; });
  stream.record(complete);
  CHECK(error_of([&] { stream.synchronize(); }).code() == Errc::aborted);
  CHECK(!ran);
  CHECK(error_of([&] { complete.wait(); }).code() == Errc::aborted);
  CHECK(error_of([&] { (void)complete.ready(); }).code() == Errc::aborted);
  CHECK(error_of([&] { (void)complete.seconds_since(complete); }).code() == Errc::aborted);
  CHECK(error_of([&] { unrecorded.wait(); }).code() == Errc::aborted);
  auto late = backend.make_stream(d0, LaneKind::activation_up);
  late.launch([&] { ran = true; });
  CHECK(error_of([&] { late.synchronize(); }).code() == Errc::aborted);
  CHECK(!ran);
}

TEST_CASE("an abort cuts copies and delays short") {
  HostBackendOptions options;
  options.link.upload_bytes_per_second = 1e-300;
  options.delay = [](DeviceId, LaneKind lane) {
    return lane == LaneKind::compute ? std::chrono::nanoseconds::max()
                                     : std::chrono::nanoseconds::min();
  };
  HostBackend backend(options);
  auto const device = backend.allocate_device(d0, 1_MiB);
  auto const host = backend.allocate_host(1_MiB);
  auto large = backend.make_stream(d0, LaneKind::parameter_up);
  auto small = backend.make_stream(d0, LaneKind::activation_up);
  auto compute = backend.make_stream(d0, LaneKind::compute);
  large.copy(device.bytes(), host.bytes());
  small.copy(device.bytes(), host.bytes());
  bool ran = false;
  compute.launch([&] { ran = true; });
  backend.abort();
  CHECK(error_of([&] { large.synchronize(); }).code() == Errc::aborted);
  CHECK(error_of([&] { small.synchronize(); }).code() == Errc::aborted);
  CHECK(error_of([&] { compute.synchronize(); }).code() == Errc::aborted);
  CHECK(!ran);
}

TEST_CASE("destroying a backend does not hang on streams that wait forever") {
  bool ran = false;
  {
    HostBackend backend(two_devices());
    auto fence = backend.make_fence();
    auto event = backend.make_event(d0);
    auto first = backend.make_stream(d0, LaneKind::compute);
    auto second = backend.make_stream(d1, LaneKind::compute);
    first.wait(fence, 1);
    first.record(event);
    second.wait(event);
    second.launch([&] { ran = true; });
  }
  CHECK(!ran);
}

TEST_CASE("streams, events and slabs may outlive their backend, and run nothing then") {
  auto backend = std::make_unique<HostBackend>();
  auto stream = backend->make_stream(d0, LaneKind::compute);
  auto event = backend->make_event(d0);
  auto fence = backend->make_fence();
  auto device = backend->allocate_device(d0, 100);
  auto host = backend->allocate_host(100);
  stream.wait(fence, 1);
  backend.reset();
  bool ran = false;
  stream.launch([&] { ran = true; });
  stream.copy(device.bytes(), host.bytes());
  stream.record(event);
  stream.wait(event);
  fence.signal(1);
  CHECK(error_of([&] { stream.synchronize(); }).code() == Errc::aborted);
  CHECK(error_of([&] { event.wait(); }).code() == Errc::aborted);
  CHECK(!ran);
}

TEST_CASE("destroying a stream after an abort waits for the work in flight") {
  HostBackend backend;
  std::atomic<bool> inside = false;
  std::atomic<bool> release = false;
  int value = 0;
  {
    auto stream = backend.make_stream(d0, LaneKind::compute);
    stream.launch([&] {
      inside = true;
      inside.notify_all();
      release.wait(false);
      value = 1;
    });
    inside.wait(false);
    backend.abort();
    release = true;
    release.notify_all();
  }
  CHECK(value == 1);
}

TEST_CASE("work that throws becomes the backend's error, which names device and lane") {
  HostBackend backend(two_devices());
  auto failing = backend.make_stream(d1, LaneKind::gradient_down);
  auto other = backend.make_stream(d0, LaneKind::compute);
  auto event = backend.make_event(d1);
  auto of_other = backend.make_event(d0);
  bool ran = false;
  failing.launch([] { throw std::runtime_error("the disk is on fire"); });
  failing.launch([&] { ran = true; });
  failing.record(event);
  other.wait(event);
  other.record(of_other);
  for (int i = 0; i < 2; ++i) {  // sticky
    for (auto* const each : {&event, &of_other}) {
      auto const error = error_of([&] { each->wait(); });
      CHECK(error.code() == Errc::device_fault);
      CHECK(contains(error.message(), "device 1"));
      CHECK(contains(error.message(), "gradient down"));
      CHECK(contains(error.message(), "the disk is on fire"));
    }
  }
  CHECK(error_of([&] { failing.synchronize(); }).code() == Errc::device_fault);
  CHECK(error_of([&] { other.synchronize(); }).code() == Errc::device_fault);
  CHECK(error_of([&] { (void)event.ready(); }).code() == Errc::device_fault);
  CHECK(!ran);
  backend.abort();
  CHECK(error_of([&] { event.wait(); }).code() == Errc::device_fault);
}

TEST_CASE("an Error thrown by work keeps its code and place, and names lane and device") {
  HostBackend backend;
  auto stream = backend.make_stream(d0, LaneKind::compute);
  std::source_location const where = std::source_location::current();
  stream.launch([where] { throw Error(Errc::not_finite, "the loss is not finite", where); });
  auto const error = error_of([&] { stream.synchronize(); });
  CHECK(error.code() == Errc::not_finite);
  CHECK(error.message() == "work on the compute lane, device 0: the loss is not finite");
  CHECK(error.where().line() == where.line());
}

TEST_CASE("an annotation names the following work in errors") {
  HostBackend backend;
  auto stream = backend.make_stream(d0, LaneKind::compute);
  stream.annotate("forward of layer 3");
  stream.launch([] {});
  stream.annotate("forward of layer 4");
  stream.launch([] { throw std::runtime_error("no"); });
  stream.annotate("forward of layer 5");
  auto const error = error_of([&] { stream.synchronize(); });
  CHECK(error.message() == "forward of layer 4, device 0: no");
}

TEST_CASE("work may throw objects of any type") {
  HostBackend backend;
  auto stream = backend.make_stream(d0, LaneKind::compute);
  stream.launch([] { throw 42; });
  auto const error = error_of([&] { stream.synchronize(); });
  CHECK(error.code() == Errc::device_fault);
  CHECK(contains(error.message(), "compute"));
}

TEST_CASE("a failure ends the waits of other streams and of the host for fences and events") {
  HostBackend backend(two_devices());
  auto failing = backend.make_stream(d0, LaneKind::compute);
  auto waiting = backend.make_stream(d1, LaneKind::compute);
  auto fence = backend.make_fence();
  auto event = backend.make_event(d1);
  bool ran = false;
  waiting.wait(fence, 1);
  waiting.launch([&] { ran = true; });
  waiting.record(event);
  failing.launch([] { throw std::runtime_error("no"); });
  CHECK(error_of([&] { event.wait(); }).code() == Errc::device_fault);
  CHECK(error_of([&] { waiting.synchronize(); }).code() == Errc::device_fault);
  CHECK(!ran);
}

TEST_CASE("the first of many errors wins on every thread") {
  auto options = two_devices();
  HostBackend backend(options);
  std::vector<HostStream> streams;
  for (int i = 0; i < 6; ++i) {
    streams.push_back(backend.make_stream(DeviceId{i % 2}, LaneKind::compute));
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    streams[i].launch([i] { throw std::runtime_error(std::to_string(i)); });
  }
  std::vector<std::optional<Error>> caught(streams.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    threads.emplace_back([&, i] { caught[i] = error_of([&] { streams[i].synchronize(); }); });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (auto const& error : caught) {
    REQUIRE(error.has_value());
    CHECK(error->message() == caught.front()->message());
  }
}

TEST_CASE(
    "the fault hook sees each piece of work with its number, and its exceptions become errors") {
  auto options = two_devices();
  std::mutex mutex;
  std::map<std::pair<int, LaneKind>, std::vector<std::uint64_t>> seen;
  options.fault = [&](DeviceId device, LaneKind lane, std::uint64_t number) {
    std::lock_guard const guard(mutex);
    seen[{device.value(), lane}].push_back(number);
    if (device == d1 && number == 4) {
      throw std::runtime_error("injected");
    }
  };
  HostBackend backend(options);
  auto const slab = backend.allocate_device(d0, 256);
  auto const host = backend.allocate_host(256);
  auto good = backend.make_stream(d0, LaneKind::activation_up);
  auto event = backend.make_event(d0);
  good.launch([] {});
  good.record(event);
  good.copy(slab.bytes(), host.bytes());
  good.wait(event);
  good.copy(host.bytes(), slab.bytes());
  good.fill(slab.bytes(), std::byte{});
  good.synchronize();
  CHECK(seen[{0, LaneKind::activation_up}] == std::vector<std::uint64_t>{0, 1, 2, 3});

  auto bad = backend.make_stream(d1, LaneKind::compute);
  int calls = 0;
  for (int i = 0; i < 10; ++i) {
    bad.launch([&] { ++calls; });
  }
  auto const error = error_of([&] { bad.synchronize(); });
  CHECK(calls == 4);
  CHECK(error.code() == Errc::device_fault);
  CHECK(contains(error.message(), "compute lane, device 1"));
  CHECK(contains(error.message(), "injected"));
}

TEST_CASE("the delay hook is called before each piece of work and delays the work") {
  HostBackendOptions options;
  std::atomic<int> asked = 0;
  options.delay = [&](DeviceId device, LaneKind lane) {
    ++asked;
    return device == d0 && lane == LaneKind::compute ? std::chrono::milliseconds(2)
                                                     : std::chrono::milliseconds(0);
  };
  HostBackend backend(options);
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto before = backend.make_event(d0);
  auto after = backend.make_event(d0);
  stream.record(before);
  stream.launch([] {});
  stream.launch([] {});
  stream.record(after);
  stream.synchronize();
  CHECK(asked == 2);
  CHECK(after.seconds_since(before) >= 0.004);
}

}  // namespace host_backend_test
