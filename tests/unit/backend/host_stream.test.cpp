// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/backend/host_stream.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace host_stream_test {

namespace {

using namespace roundpipe;
using test::error_of;

DeviceId const d0{0};
DeviceId const d1{1};
DeviceId const d2{2};

HostBackendOptions three_devices() {
  HostBackendOptions options;
  options.devices = 3;
  return options;
}

template <class T, std::size_t n>
DeviceSpan<T> as_device(std::array<T, n>& array) {
  return {array.data(), n};
}

template <class T, std::size_t n>
DeviceBytes as_device_bytes(std::array<T, n>& array) {
  return {reinterpret_cast<std::byte*>(array.data()), n * sizeof(T)};
}

}  // namespace

TEST_CASE("an inline stream runs work at once, on the caller's thread") {
  HostStream stream;
  auto thread = std::thread::id();
  stream.launch([&] { thread = std::this_thread::get_id(); });
  CHECK(thread == std::this_thread::get_id());
  stream.synchronize();
}

TEST_CASE("an inline stream passes on exceptions of its work, and continues") {
  HostStream stream;
  CHECK_THROWS_AS(stream.launch([] { throw std::runtime_error("no"); }), std::runtime_error);
  bool ran = false;
  stream.launch([&] { ran = true; });
  CHECK(ran);
}

TEST_CASE("an inline stream copies, fills and rounds") {
  HostStream stream;
  std::array<float, 4> const host{1.0F, -2.5F, 1.00390625F, 3.0F};
  std::array<float, 4> device{};
  std::array<float, 4> back{};
  stream.copy(as_device_bytes(device), std::as_bytes(std::span(host)));
  CHECK(device == host);
  stream.copy(std::as_writable_bytes(std::span(back)), as_device_bytes(device));
  CHECK(back == host);
  std::array<float, 4> other{};
  stream.copy_to_peer(as_device_bytes(other), as_device_bytes(device));
  CHECK(other == host);

  std::array<BFloat16, 4> narrow{};
  stream.round(as_device(narrow), as_device(device));
  CHECK(static_cast<float>(narrow[0]) == 1.0F);
  CHECK(static_cast<float>(narrow[1]) == -2.5F);
  CHECK(static_cast<float>(narrow[2]) == 1.0F);  // a tie rounds to even
  CHECK(static_cast<float>(narrow[3]) == 3.0F);

  std::array<Float16, 4> half{};
  stream.round(as_device(half), as_device(device));
  CHECK(static_cast<float>(half[0]) == 1.0F);
  CHECK(static_cast<float>(half[1]) == -2.5F);
  CHECK(half[2].bits() == Float16(device[2]).bits());
  CHECK(static_cast<float>(half[3]) == 3.0F);

  stream.fill(as_device_bytes(device), std::byte{0xFF});
  CHECK(std::isnan(device[0]));
  CHECK(std::isnan(device[3]));
}

TEST_CASE("a stream adds and copies tensors, with one rounding") {
  HostStream stream;
  std::array<BFloat16, 2> a{BFloat16(1.0F), BFloat16(3.0F)};
  std::array<BFloat16, 2> const b{BFloat16(0.00390625F), BFloat16(-1.0F)};
  std::array<BFloat16, 2> copied{};
  DeviceTensor const to{as_device_bytes(a), {2}, DType::bf16};
  auto from_memory = b;
  DeviceTensor const from{as_device_bytes(from_memory), {2}, DType::bf16};
  stream.add(to, from);
  stream.copy(DeviceTensor{as_device_bytes(copied), {2}, DType::bf16}, to);
  for (auto const& result : {a, copied}) {
    CHECK(static_cast<float>(result[0]) == 1.0F);  // a tie rounds to even
    CHECK(static_cast<float>(result[1]) == 2.0F);
  }
  CHECK(from_memory[1].bits() == b[1].bits());

  DeviceTensor const one{as_device_bytes(a), {1}, DType::bf16};
  DeviceTensor const halves{as_device_bytes(a), {2}, DType::f16};
  DeviceTensor const integers{as_device_bytes(a), {1}, DType::i32};
  CHECK(error_of([&] { stream.copy(to, one); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { stream.add(to, one); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { stream.add(to, halves); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { stream.add(integers, integers); }).code() == Errc::invalid_argument);
}

TEST_CASE("an inline stream records events at once and passes signalled fences") {
  HostStream stream;
  HostEvent first;
  HostEvent second;
  stream.wait(first);
  stream.record(first);
  stream.record(second);
  CHECK(second.ready());
  second.wait();
  stream.wait(second);
  CHECK(second.seconds_since(first) >= 0);
  HostFence fence;
  fence.signal(3);
  stream.wait(fence, 3);
}

TEST_CASE("empty copies, fills and roundings do nothing") {
  HostBackend backend;
  auto threaded = backend.make_stream(d0, LaneKind::compute);
  HostStream inlined;
  std::array<std::uint8_t, 3> memory{1, 2, 3};
  for (auto* const stream : {&threaded, &inlined}) {
    stream->copy(DeviceBytes{}, HostSpan<std::byte const>{});
    stream->copy(HostBytes{}, DeviceSpan<std::byte const>{});
    stream->fill(DeviceBytes{}, std::byte{});
    stream->copy(as_device_bytes(memory).subspan(1, 0), HostSpan<std::byte const>{});
    stream->fill(as_device_bytes(memory).subspan(1, 0), std::byte{0});
    stream->round(DeviceSpan<BFloat16>{}, DeviceSpan<float const>{});
    stream->round(DeviceSpan<Float16>{}, DeviceSpan<float const>{});
    stream->synchronize();
    CHECK(memory == std::array<std::uint8_t, 3>{1, 2, 3});
  }
}

TEST_CASE("copies and roundings of unequal sizes are refused at the call") {
  HostBackend backend;
  auto threaded = backend.make_stream(d0, LaneKind::compute);
  HostStream inlined;
  auto const host = backend.allocate_host(4);
  auto const device = backend.allocate_device(d0, 8);
  auto* const pointer = device.bytes().device_pointer();
  DeviceSpan<float> const wide(reinterpret_cast<float*>(pointer), 2);
  DeviceSpan<BFloat16> const narrow(reinterpret_cast<BFloat16*>(pointer), 3);
  DeviceSpan<Float16> const half(reinterpret_cast<Float16*>(pointer), 3);
  for (auto* const stream : {&threaded, &inlined}) {
    auto const code = [](auto&& f) { return error_of(f).code(); };
    CHECK(code([&] { stream->copy(device.bytes(), host.bytes()); }) == Errc::invalid_argument);
    CHECK(code([&] { stream->copy(host.bytes(), device.bytes()); }) == Errc::invalid_argument);
    CHECK(code([&] { stream->copy_to_peer(device.bytes(), device.bytes().subspan(0, 4)); }) ==
          Errc::invalid_argument);
    CHECK(code([&] { stream->round(narrow, wide); }) == Errc::invalid_argument);
    CHECK(code([&] { stream->round(half, wide); }) == Errc::invalid_argument);
    stream->synchronize();
  }
}

TEST_CASE("a stream runs its work in order, on one thread that is not the caller's") {
  HostBackend backend;
  auto stream = backend.make_stream(d0, LaneKind::compute);
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  for (int i = 0; i < 1000; ++i) {
    stream.launch([&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
    });
  }
  stream.synchronize();
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(order == expected);
  CHECK(threads == std::vector(1000, threads.front()));
  CHECK(threads.front() != std::this_thread::get_id());
}

TEST_CASE("a stream copies, fills and rounds in order") {
  HostBackend backend;
  auto up = backend.make_stream(d0, LaneKind::parameter_up);
  auto const wide = backend.allocate_device(d0, 8 * sizeof(float));
  auto const narrow = backend.allocate_device(d0, 8 * sizeof(BFloat16));
  auto const source = backend.allocate_host(8 * sizeof(float));
  auto const target = backend.allocate_host(8 * sizeof(BFloat16));
  auto* const numbers = reinterpret_cast<float*>(source.bytes().data());
  std::iota(numbers, numbers + 8, 1.0F);
  up.copy(wide.bytes(), source.bytes());
  up.fill(wide.bytes().subspan(0, 4), std::byte{});
  up.round({reinterpret_cast<BFloat16*>(narrow.bytes().device_pointer()), 8},
           {reinterpret_cast<float const*>(wide.bytes().device_pointer()), 8});
  up.copy(target.bytes(), narrow.bytes());
  up.synchronize();
  auto const* const result = reinterpret_cast<BFloat16 const*>(target.bytes().data());
  CHECK(static_cast<float>(result[0]) == 0.0F);
  for (std::size_t i = 1; i < 8; ++i) {
    CHECK(static_cast<float>(result[i]) == static_cast<float>(i + 1));
  }
}

TEST_CASE(
    "a stream rounds to f16 to nearest, ties to even; values beyond the range become infinite") {
  HostBackend backend;
  auto stream = backend.make_stream(d0, LaneKind::compute);
  std::array const numbers{1.0F + 0x1p-11F, 1.0F + 0x1.8p-10F, 65519.0F, -65520.0F, 0x1p-25F, 3.0F};
  std::array<Float16, numbers.size()> rounded{};
  stream.round(as_device(rounded), DeviceSpan<float const>(numbers.data(), numbers.size()));
  stream.synchronize();
  auto const infinity = std::numeric_limits<float>::infinity();
  std::array const expected{1.0F, 1.0F + 0x1p-9F, 65504.0F, -infinity, 0.0F, 3.0F};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    CHECK(static_cast<float>(rounded[i]) == expected[i]);
  }
}

TEST_CASE("an event that was never recorded is complete") {
  HostBackend backend;
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto event = backend.make_event(d0);
  CHECK(event.ready());
  event.wait();
  bool ran = false;
  stream.wait(event);
  stream.launch([&] { ran = true; });
  stream.synchronize();
  CHECK(ran);
}

TEST_CASE("an event is complete when all work enqueued before it has run") {
  HostBackend backend;
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto gate = backend.make_fence();
  auto event = backend.make_event(d0);
  int value = 0;
  stream.wait(gate, 1);
  stream.launch([&] { value = 1; });
  stream.record(event);
  CHECK(!event.ready());
  gate.signal(1);
  event.wait();
  CHECK(value == 1);
  CHECK(event.ready());
}

TEST_CASE("a wait captures the latest record, and recording again does not move it") {
  HostBackend backend(three_devices());
  auto recording = backend.make_stream(d0, LaneKind::compute);
  auto early = backend.make_stream(d1, LaneKind::compute);
  auto late = backend.make_stream(d2, LaneKind::compute);
  auto gate = backend.make_fence();
  auto event = backend.make_event(d0);
  int value = 0;
  int seen_early = -1;
  int seen_late = -1;

  recording.launch([&] { value = 1; });
  recording.record(event);
  early.wait(event);
  early.launch([&] { seen_early = value; });
  recording.wait(gate, 1);  // opens only when `early` has passed
  recording.launch([&] { value = 2; });
  recording.record(event);
  late.wait(event);
  late.launch([&] { seen_late = value; });

  early.synchronize();
  CHECK(seen_early == 1);
  CHECK(!event.ready());
  gate.signal(1);
  late.synchronize();
  CHECK(seen_late == 2);
}

TEST_CASE("a later record that completes first does not end waits for the earlier one") {
  HostBackend backend;
  auto slow = backend.make_stream(d0, LaneKind::compute);
  auto fast = backend.make_stream(d0, LaneKind::activation_up);
  auto waiting = backend.make_stream(d0, LaneKind::activation_down);
  auto gate = backend.make_fence();
  auto event = backend.make_event(d0);
  int value = 0;
  int seen = -1;
  slow.wait(gate, 1);
  slow.launch([&] { value = 1; });
  slow.record(event);
  waiting.wait(event);
  waiting.launch([&] { seen = value; });
  fast.record(event);
  fast.synchronize();
  CHECK(event.ready());
  event.wait();
  gate.signal(1);
  waiting.synchronize();
  CHECK(seen == 1);
}

TEST_CASE("streams of several devices wait for each other in a chain") {
  HostBackend backend(three_devices());
  std::vector<HostStream> streams;
  std::vector<HostEvent> events;
  for (auto const device : {d0, d1, d2}) {
    streams.push_back(backend.make_stream(device, LaneKind::compute));
    events.push_back(backend.make_event(device));
  }
  std::vector<int> order;
  for (int i = 0; i < 300; ++i) {
    auto const here = static_cast<std::size_t>(i) % 3;
    streams[here].wait(events[(here + 2) % 3]);
    streams[here].launch([&order, i] { order.push_back(i); });
    streams[here].record(events[here]);
  }
  events[299 % 3].wait();
  std::vector<int> expected(300);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(order == expected);
}

TEST_CASE("a fence releases waiters for its value or less, and its value never falls") {
  HostBackend backend(three_devices());
  auto low = backend.make_stream(d0, LaneKind::compute);
  auto high = backend.make_stream(d1, LaneKind::compute);
  auto event = backend.make_event(d1);
  auto fence = backend.make_fence();
  int value = 0;
  int seen = -1;
  low.wait(fence, 0);
  low.wait(fence, 1);
  low.wait(fence, 2);
  high.wait(fence, 3);
  high.launch([&] { seen = value; });
  high.record(event);
  fence.signal(2);
  fence.signal(1);
  low.synchronize();
  CHECK(!event.ready());
  value = 7;
  fence.signal(5);
  high.wait(fence, 4);
  high.synchronize();
  CHECK(seen == 7);
}

TEST_CASE("events and fences may be destroyed while streams still use them") {
  HostBackend backend;
  auto recording = backend.make_stream(d0, LaneKind::compute);
  auto waiting = backend.make_stream(d0, LaneKind::activation_up);
  auto gate = backend.make_fence();
  int value = 0;
  int seen = -1;
  {
    auto event = backend.make_event(d0);
    auto fence = backend.make_fence();
    recording.wait(gate, 1);
    recording.wait(fence, 1);
    recording.launch([&] { value = 1; });
    recording.record(event);
    waiting.wait(event);
    waiting.launch([&] { seen = value; });
    fence.signal(1);
  }
  gate.signal(1);
  waiting.synchronize();
  CHECK(seen == 1);
}

TEST_CASE("event times follow completion order, and are refused before completion") {
  HostBackend backend;
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto gate = backend.make_fence();
  auto first = backend.make_event(d0);
  auto second = backend.make_event(d0);
  CHECK(error_of([&] { (void)second.seconds_since(first); }).code() == Errc::invalid_argument);
  stream.record(first);
  stream.wait(gate, 1);
  stream.record(second);
  first.wait();
  CHECK(error_of([&] { (void)second.seconds_since(first); }).code() == Errc::invalid_argument);
  gate.signal(1);
  second.wait();
  CHECK(second.seconds_since(first) >= 0);
  CHECK(first.seconds_since(second) == -second.seconds_since(first));
}

TEST_CASE("events of other devices, and events and fences of other backends, are refused") {
  HostBackend backend(three_devices());
  HostBackend other;
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto of_device_1 = backend.make_event(d1);
  auto of_other = other.make_event(d0);
  auto fence_of_other = other.make_fence();
  HostEvent of_none;
  HostFence fence_of_none;
  auto const code = [](auto&& f) { return error_of(f).code(); };
  CHECK(code([&] { stream.record(of_device_1); }) == Errc::invalid_argument);
  CHECK(code([&] { stream.record(of_other); }) == Errc::invalid_argument);
  CHECK(code([&] { stream.wait(of_other); }) == Errc::invalid_argument);
  CHECK(code([&] { stream.record(of_none); }) == Errc::invalid_argument);
  CHECK(code([&] { stream.wait(of_none); }) == Errc::invalid_argument);
  CHECK(code([&] { stream.wait(fence_of_other, 0); }) == Errc::invalid_argument);
  CHECK(code([&] { stream.wait(fence_of_none, 0); }) == Errc::invalid_argument);
  stream.wait(of_device_1);
  stream.synchronize();
}

TEST_CASE("work may enqueue work on its own stream and on others, and signal fences") {
  HostBackend backend(three_devices());
  auto one = backend.make_stream(d0, LaneKind::compute);
  auto two = backend.make_stream(d1, LaneKind::compute);
  auto fence = backend.make_fence();
  std::vector<int> order;
  one.launch([&] {
    order.push_back(1);
    one.launch([&] {
      order.push_back(2);
      two.launch([&] {
        order.push_back(3);
        fence.signal(1);
      });
    });
  });
  auto third = backend.make_stream(d2, LaneKind::compute);
  third.wait(fence, 1);
  third.synchronize();
  CHECK(order == std::vector{1, 2, 3});
}

TEST_CASE("several threads may enqueue on one stream") {
  HostBackend backend;
  auto stream = backend.make_stream(d0, LaneKind::compute);
  std::vector<std::pair<int, int>> seen;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        stream.launch([&seen, t, i] { seen.emplace_back(t, i); });
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  stream.synchronize();
  CHECK(seen.size() == 800);
  std::array<int, 4> next{};
  for (auto const& [t, i] : seen) {
    CHECK(i == next[static_cast<std::size_t>(t)]++);
  }
}

TEST_CASE("streams move, and a moved-from stream is inline") {
  HostBackend backend;
  auto stream = backend.make_stream(d0, LaneKind::compute);
  int calls = 0;
  stream.launch([&] { ++calls; });
  HostStream other(std::move(stream));
  stream.launch([] {});
  other.launch([&] { ++calls; });
  stream = std::move(other);
  stream.launch([&] { ++calls; });
  stream.synchronize();
  CHECK(calls == 3);
  stream = backend.make_stream(d0, LaneKind::compute);
  stream.synchronize();
}

TEST_CASE("the work of a destroyed stream still runs") {
  HostBackend backend;
  auto gate = backend.make_fence();
  auto event = backend.make_event(d0);
  bool ran = false;
  {
    auto stream = backend.make_stream(d0, LaneKind::compute);
    stream.wait(gate, 1);
    stream.launch([&] { ran = true; });
    stream.record(event);
  }
  CHECK(!event.ready());
  gate.signal(1);
  event.wait();
  CHECK(ran);
}

}  // namespace host_stream_test
