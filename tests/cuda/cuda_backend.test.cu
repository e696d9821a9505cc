// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace roundpipe;
using test::error_of;

DeviceId const d0{0};
DeviceId const d1{1};

/// Two workers on the first device.
cu::CudaBackendOptions two_workers() {
  cu::CudaBackendOptions options;
  options.devices = {d0, d0};
  options.device_memory_bytes = 64_MiB;
  return options;
}

/// One worker, whose streams may wait on the device for later work of the host.
cu::CudaBackendOptions one_worker() {
  auto options = two_workers();
  options.devices = {d0};
  return options;
}

bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

std::byte pattern(std::size_t i) {
  return static_cast<std::byte>(i * 37 + i / 251);
}

/// Numbers of every kind: ordinary ones, ties, subnormals, infinities, and values beyond f16.
std::vector<float> awkward_numbers(std::size_t count) {
  std::vector<float> numbers(count);
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    auto bits = state;
    if (i % 7 == 0) {
      bits = (bits & 0xffff0000U) | 0x8000U;  // a tie for bf16
    }
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isnan(value)) {
      value = i % 2 == 0 ? std::numeric_limits<float>::infinity() : 65520.0F;
    }
    numbers[i] = i % 3 == 0 ? std::ldexp(value, -static_cast<int>(i % 200)) : value;
  }
  return numbers;
}

template <class Narrow>
void check_rounding(std::size_t count, std::size_t offset) {
  cu::CudaBackend backend(two_workers());
  auto stream = backend.make_stream(d1, LaneKind::compute);
  auto const numbers = awkward_numbers(count + offset);
  auto host = backend.allocate_host((count + offset) * sizeof(float));
  std::memcpy(host.bytes().data(), numbers.data(), host.bytes().size());
  auto wide = backend.allocate_device(d1, host.bytes().size());
  auto narrow = backend.allocate_device(d1, (count + offset) * sizeof(Narrow));
  stream.copy(wide.bytes(), host.bytes());
  stream.fill(narrow.bytes(), std::byte{0xff});
  stream.round(DeviceSpan<Narrow>(
                   reinterpret_cast<Narrow*>(narrow.bytes().device_pointer()) + offset, count),
               DeviceSpan<float const>(
                   reinterpret_cast<float const*>(wide.bytes().device_pointer()) + offset, count));
  auto result = backend.allocate_host(narrow.bytes().size());
  stream.copy(result.bytes(), narrow.bytes());
  stream.synchronize();
  auto const* const rounded = reinterpret_cast<Narrow const*>(result.bytes().data());
  std::size_t wrong = 0;
  for (std::size_t i = offset; i < numbers.size(); ++i) {
    wrong += rounded[i].bits() != Narrow(numbers[i]).bits() ? 1 : 0;
  }
  CHECK(wrong == 0);
  for (std::size_t i = 0; i < offset; ++i) {
    CHECK(rounded[i].bits() == 0xffff);
  }
}

}  // namespace

TEST_CASE("a CUDA backend names its devices and their budgets") {
  cu::CudaBackend backend(two_workers());
  CHECK(backend.device_count() == 2);
  CHECK(backend.ordinal(d1) == d0);
  auto const properties = backend.device_properties(d1);
  CHECK_FALSE(properties.name.empty());
  CHECK(properties.memory_bytes == 64_MiB);
  CHECK(properties.flops_per_second > 1e12);
  CHECK(properties.memory_bytes_per_second > 1e11);
  // Both directions at once carry more than one, and no more than both alone.
  auto const alone = properties.upload_bytes_per_second + properties.download_bytes_per_second;
  CHECK(properties.host_bytes_per_second > 0.5 * alone);
  CHECK(properties.host_bytes_per_second < 1.1 * alone);
  CHECK(error_of([&] { (void)backend.device_properties(DeviceId(2)); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([&] { (void)backend.make_stream(d0, LaneKind::optimizer); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("unknown devices, and budgets above the free memory, are refused by name") {
  auto const none = error_of([] {
    cu::CudaBackendOptions options;
    options.devices = {DeviceId(77)};
    cu::CudaBackend const backend(options);
  });
  CHECK(none.code() == Errc::invalid_argument);
  CHECK(contains(none.what(), "no CUDA device 77"));
  auto const few = error_of([] { (void)cu::first_devices(1000); });
  CHECK(contains(few.what(), "1000 CUDA devices are asked for"));
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

TEST_CASE("the budget of a device is a limit, however much memory the card has") {
  cu::CudaBackend backend(two_workers());
  {
    auto slab = backend.allocate_device(d0, 40_MiB);
    CHECK(slab.bytes().size() == 40_MiB);
    CHECK(reinterpret_cast<std::uintptr_t>(slab.bytes().device_pointer()) % 256 == 0);
    auto const error = error_of([&] { (void)backend.allocate_device(d0, 30_MiB); });
    CHECK(error.code() == Errc::over_budget);
    CHECK(contains(error.what(), "24.00 MiB left of a budget of 64.00 MiB"));
    auto const other = backend.allocate_device(d1, 30_MiB);
    auto const moved = std::move(slab);
    CHECK(moved.bytes().size() == 40_MiB);
  }
  CHECK(backend.allocate_device(d0, 64_MiB).bytes().size() == 64_MiB);
}

TEST_CASE("pinned memory is zeroed, begins at huge pages, and moves as a whole") {
  cu::PinnedMemory memory(5_MiB + 3);
  CHECK(memory.bytes().size() == 5_MiB + 3);
  CHECK(reinterpret_cast<std::uintptr_t>(memory.bytes().data()) % 2_MiB == 0);
  bool zero = true;
  for (auto const byte : memory.bytes()) {
    zero = zero && byte == std::byte{0};
  }
  CHECK(zero);
  cudaPointerAttributes attributes{};
  REQUIRE(cudaPointerGetAttributes(&attributes, memory.bytes().data()) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeHost);
  auto* const address = memory.bytes().data();
  cu::PinnedMemory taken(std::move(memory));
  CHECK(memory.bytes().empty());
  CHECK(taken.bytes().data() == address);
  taken = cu::PinnedMemory();
  REQUIRE(cudaPointerGetAttributes(&attributes, address) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
}

TEST_CASE("more host memory than exists is refused, and the error names the size") {
  auto const error = error_of([] { cu::PinnedMemory const memory(Bytes{1} << 60); });
  CHECK(error.code() == std::errc::not_enough_memory);
  CHECK(contains(error.what(), "1048576.00 TiB"));
}

TEST_CASE("slabs come from the caller's pinned memory while some is left") {
  cu::PinnedMemory mine(1_MiB);
  std::ranges::fill(mine.bytes(), std::byte{0xFF});
  auto options = two_workers();
  options.pinned = {mine.bytes()};
  cu::CudaBackend backend(options);
  auto const first = backend.allocate_host(1000);
  auto const second = backend.allocate_host(1_MiB - 1024);
  auto const third = backend.allocate_host(1);
  CHECK(first.bytes().data() == mine.bytes().data());
  CHECK(second.bytes().data() == mine.bytes().data() + 1024);
  for (auto const& slab : {first.bytes(), second.bytes()}) {
    CHECK(std::ranges::all_of(slab, [](std::byte b) { return b == std::byte{}; }));
  }
  CHECK((third.bytes().data() < mine.bytes().data() ||
         third.bytes().data() >= mine.bytes().data() + mine.bytes().size()));
}

TEST_CASE("copies move every byte, up and down, also on the caller's stream") {
  cudaStream_t mine = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking) == cudaSuccess);
  {
    auto options = two_workers();
    options.stream = [&](DeviceId, LaneKind kind) {
      return kind == LaneKind::compute ? mine : nullptr;
    };
    cu::CudaBackend backend(options);
    for (auto const kind : {LaneKind::compute, LaneKind::parameter_up}) {
      auto stream = backend.make_stream(d0, kind);
      CHECK((stream.get() == mine) == (kind == LaneKind::compute));
      auto from = backend.allocate_host(100'003);
      for (std::size_t i = 0; i < from.bytes().size(); ++i) {
        from.bytes()[i] = pattern(i);
      }
      auto const there = backend.allocate_device(d0, from.bytes().size());
      auto const back = backend.allocate_host(from.bytes().size());
      stream.copy(there.bytes(), from.bytes());
      stream.copy(back.bytes(), there.bytes());
      stream.copy(DeviceBytes{}, HostSpan<std::byte const>{});
      stream.synchronize();
      CHECK(std::memcmp(back.bytes().data(), from.bytes().data(), from.bytes().size()) == 0);
      CHECK(error_of([&] { stream.copy(there.bytes(), from.bytes().first(5)); }).code() ==
            Errc::invalid_argument);
    }
  }
  CHECK(cudaStreamDestroy(mine) == cudaSuccess);
}

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

TEST_CASE("the driver reports the links between devices") {
  auto const devices = cu::device_count();
  for (std::size_t a = 0; a < devices; ++a) {
    for (std::size_t b = 0; b < devices; ++b) {
      CHECK(cu::can_access_peer(DeviceId(a), DeviceId(b)) ==
            cu::can_access_peer(DeviceId(b), DeviceId(a)));
    }
  }
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

TEST_CASE("rounding gives the bits of the host for any length and alignment") {
  for (std::size_t const count :
       {std::size_t{1}, std::size_t{5}, std::size_t{4096}, std::size_t{1'000'003}}) {
    for (std::size_t const offset : {std::size_t{0}, std::size_t{1}}) {
      CAPTURE(count);
      CAPTURE(offset);
      check_rounding<BFloat16>(count, offset);
      check_rounding<Float16>(count, offset);
    }
  }
}

TEST_CASE("an event that was never recorded counts as reached, and a wait keeps its record") {
  cu::CudaBackend backend(one_worker());
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto other = backend.make_stream(d0, LaneKind::activation_up);
  auto fence = backend.make_fence();
  auto event = backend.make_event(d0);
  event.wait();
  CHECK(event.ready());
  other.wait(event);
  other.synchronize();
  stream.wait(fence, 1);
  stream.record(event);
  CHECK_FALSE(event.ready());
  auto later = backend.make_event(d0);
  other.wait(event);
  other.record(later);
  CHECK_FALSE(later.ready());
  fence.signal(1);
  later.wait();
  CHECK(event.ready());
  CHECK(later.ready());
}

TEST_CASE("streams wait for fences on the device, or on the host where they must") {
  auto on_host = one_worker();
  on_host.waits_on_device = false;
  // Workers that share a device also wait on the host.
  for (auto const& options : {one_worker(), on_host, two_workers()}) {
    CAPTURE(options.waits_on_device);
    CAPTURE(options.devices.size());
    cu::CudaBackend backend(options);
    auto stream = backend.make_stream(d0, LaneKind::parameter_up);
    auto fence = backend.make_fence();
    auto const from = backend.allocate_host(64);
    auto const there = backend.allocate_device(d0, 64);
    auto const back = backend.allocate_host(64);
    std::thread host([&] {
      std::memset(from.bytes().data(), 42, 64);
      fence.signal(3);
      fence.signal(2);  // changes nothing
    });
    stream.wait(fence, 1);
    stream.wait(fence, 3);
    stream.copy(there.bytes(), from.bytes());
    stream.copy(back.bytes(), there.bytes());
    stream.synchronize();
    host.join();
    CHECK(back.bytes().front() == std::byte{42});
  }
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

TEST_CASE("events measure the time between them") {
  cu::CudaBackend backend(two_workers());
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto start = backend.make_event(d0);
  auto end = backend.make_event(d0);
  auto const memory = backend.allocate_device(d0, 32_MiB);
  stream.annotate("fills");
  stream.record(start);
  for (int i = 0; i < 20; ++i) {
    stream.fill(memory.bytes(), std::byte{1});
  }
  stream.record(end);
  stream.annotate(nullptr);
  end.wait();
  CHECK(end.seconds_since(start) > 20 * 32.0 * (1 << 20) / 1e14);
  CHECK(start.seconds_since(start) == 0);
}
