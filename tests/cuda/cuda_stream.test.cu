// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/cuda_stream.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <support/cuda_workers.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

using namespace roundpipe;
using test::d0;
using test::d1;
using test::error_of;
using test::one_worker;
using test::two_workers;

namespace {

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

/// Tensor \p i of several that follow each other in \p memory, from element \p offset of each on.
template <class T>
DeviceTensor tensor(DeviceBytes memory, std::size_t i, std::size_t count, std::size_t offset) {
  auto const bytes = (count + offset) * sizeof(T);
  return {memory.subspan(i * bytes + offset * sizeof(T), count * sizeof(T)),
          {static_cast<std::int64_t>(count)},
          dtype_of<T>};
}

template <class T>
void check_sum(std::size_t count, std::size_t offset) {
  cu::CudaBackend backend(two_workers());
  auto stream = backend.make_stream(d1, LaneKind::compute);
  auto const numbers = awkward_numbers(2 * (count + offset));
  auto host = backend.allocate_host(numbers.size() * sizeof(T));
  auto* const values = reinterpret_cast<T*>(host.bytes().data());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    values[i] = T(numbers[i]);
  }
  auto const device = backend.allocate_device(d1, 2 * host.bytes().size());
  auto const memory = DeviceBytes(device.bytes()).subspan(0, host.bytes().size());
  auto const copied = DeviceBytes(device.bytes()).subspan(host.bytes().size(), memory.size());
  auto const to = tensor<T>(memory, 0, count, offset);
  auto const from = tensor<T>(memory, 1, count, offset);
  stream.copy(memory, host.bytes());
  stream.fill(copied, std::byte{});
  stream.add(to, from);
  stream.copy(tensor<T>(copied, 0, count, offset), to);
  auto const result = backend.allocate_host(device.bytes().size());
  stream.copy(result.bytes(), device.bytes());
  stream.synchronize();
  auto const* const results = reinterpret_cast<T const*>(result.bytes().data());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    auto const inside = i >= offset && i < offset + count;
    auto const sum = inside ? T(values[i] + values[i + count + offset]) : values[i];
    auto const there = inside ? sum : T{};
    auto const same = [](T a, T b) {
      return std::memcmp(&a, &b, sizeof(T)) == 0 || (a != a && b != b);
    };
    wrong += same(results[i], sum) && same(results[numbers.size() + i], there) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("tensors are added and copied on their device with the bits of the host") {
  for (std::size_t const count : {std::size_t{0}, std::size_t{5}, std::size_t{1'200'003}}) {
    for (std::size_t const offset : {std::size_t{0}, std::size_t{1}}) {
      CAPTURE(count);
      CAPTURE(offset);
      check_sum<double>(count, offset);
      check_sum<float>(count, offset);
      check_sum<BFloat16>(count, offset);
      check_sum<Float16>(count, offset);
    }
  }
}

TEST_CASE("tensors of other sizes or types are refused, and integers have no sum") {
  cu::CudaBackend backend(one_worker());
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto const memory = backend.allocate_device(d0, 256);
  DeviceTensor const four{memory.bytes(), {4}, DType::f32};
  DeviceTensor const five{memory.bytes(), {5}, DType::f32};
  DeviceTensor const halves{memory.bytes(), {4}, DType::f16};
  DeviceTensor const integers{memory.bytes(), {4}, DType::i32};
  CHECK(error_of([&] { stream.copy(four, five); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { stream.copy(four, halves); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { stream.add(four, five); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { stream.add(integers, integers); }).code() == Errc::invalid_argument);
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

TEST_CASE("copies to other devices move every byte, and other sizes are refused") {
  auto options = two_workers();
  if (cu::device_count() > 1) {
    options.devices = {d0, d1};
  }
  cu::CudaBackend backend(options);
  auto const properties = backend.device_properties(d0);
  auto const open =
      cu::device_count() == 1 || (cu::can_access_peer(d0, d1) && cu::can_access_peer(d1, d0));
  CHECK(properties.reaches_peers == open);
  CHECK((properties.peer_bytes_per_second > 1e9) == (open && cu::device_count() > 1));
  if (!open) {
    MESSAGE("these devices do not reach each other: nothing to copy");
    return;
  }
  auto host = backend.allocate_host(100'003);
  for (std::size_t i = 0; i < host.bytes().size(); ++i) {
    host.bytes()[i] = pattern(i);
  }
  auto const bytes = host.bytes().size();
  auto const here = backend.allocate_device(d0, bytes);
  auto const there = backend.allocate_device(d1, bytes);
  auto const back = backend.allocate_host(bytes);
  auto peer = backend.make_stream(d0, LaneKind::peer);
  auto down = backend.make_stream(d1, LaneKind::activation_down);
  auto event = backend.make_event(d0);
  peer.copy(here.bytes(), host.bytes());
  peer.copy_to_peer(there.bytes(), here.bytes());
  peer.record(event);
  down.wait(event);
  down.copy(back.bytes(), there.bytes());
  down.synchronize();
  CHECK(std::memcmp(back.bytes().data(), host.bytes().data(), bytes) == 0);
  CHECK(error_of([&] { peer.copy_to_peer(there.bytes(), here.bytes().subspan(0, 5)); }).code() ==
        Errc::invalid_argument);
  options.reaches_peers = false;
  CHECK_FALSE(cu::CudaBackend(options).device_properties(d0).reaches_peers);
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

TEST_CASE("a moved stream keeps its work, and a handle makes its device current") {
  cu::CudaBackend backend(one_worker());
  auto stream = backend.make_stream(d0, LaneKind::compute);
  auto* const handle = stream.get();
  auto const memory = backend.allocate_device(d0, 64);
  auto const back = backend.allocate_host(64);
  stream.fill(memory.bytes(), std::byte{7});
  auto moved = std::move(stream);
  CHECK(moved.device() == d0);
  moved.copy(back.bytes(), memory.bytes());
  stream = backend.make_stream(d0, LaneKind::parameter_up);
  moved.synchronize();
  CHECK(back.bytes().back() == std::byte{7});
  CHECK(moved.get() == handle);
  CHECK(stream.get() != handle);
  std::thread([&] {
    CHECK(moved.get() == handle);
    CHECK(cu::current_device() == d0);
  }).join();
}
