// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/span.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <type_traits>

namespace span_test {

namespace {

using roundpipe::DeviceBytes;
using roundpipe::DeviceSpan;
using roundpipe::HostBytes;
using roundpipe::HostSpan;
using roundpipe::TensorView;

// Device memory and host memory do not convert to each other.
static_assert(!std::is_constructible_v<HostSpan<float>, DeviceSpan<float>>);
static_assert(!std::is_constructible_v<DeviceSpan<float>, HostSpan<float>>);
static_assert(!std::is_constructible_v<HostBytes, DeviceBytes>);
static_assert(!std::is_constructible_v<DeviceBytes, HostBytes>);

// Adding const is implicit; removing const or changing the type does not compile.
static_assert(std::is_convertible_v<DeviceSpan<float>, DeviceSpan<float const>>);
static_assert(!std::is_constructible_v<DeviceSpan<float>, DeviceSpan<float const>>);
static_assert(!std::is_constructible_v<DeviceSpan<int>, DeviceSpan<float>>);
struct Base {};
struct Derived : Base {
  int more;
};
static_assert(!std::is_constructible_v<DeviceSpan<Base>, DeviceSpan<Derived>>);

// The host cannot read device memory by accident.
template <class S>
concept Readable = requires(S span) { span[0]; } || requires(S span) { *span.begin(); } ||
                   requires(S span) { *span.data(); } || requires(S span) { std::begin(span); };
static_assert(!Readable<DeviceSpan<float>>);
static_assert(Readable<HostSpan<float>>);

// A view says by its name that enqueued work reads it.
static_assert(Readable<TensorView<float>>);
static_assert(!std::is_convertible_v<DeviceSpan<float>, TensorView<float>>);
static_assert(std::is_convertible_v<TensorView<float>, DeviceSpan<float const>>);
static_assert(std::is_convertible_v<TensorView<float>, TensorView<float const>>);
static_assert(!std::is_constructible_v<TensorView<float>, TensorView<float const>>);

static_assert(std::is_trivially_copyable_v<DeviceSpan<float>>);  // for kernels
static_assert(std::is_trivially_copyable_v<TensorView<float>>);

}  // namespace

TEST_CASE("a device span has an address, a size and bytes") {
  std::array<float, 8> memory{};
  DeviceSpan<float> const span(memory.data(), memory.size());
  CHECK(span.device_pointer() == memory.data());
  CHECK(span.size() == 8);
  CHECK(span.size_bytes() == 32);
  CHECK_FALSE(span.empty());
  DeviceSpan<float const> const constant = span;
  CHECK(constant.device_pointer() == memory.data());
  CHECK(constant.size() == 8);
}

TEST_CASE("a subspan lies inside its device span") {
  std::array<float, 8> memory{};
  DeviceSpan<float> const span(memory.data(), memory.size());
  auto const part = span.subspan(2, 3);
  CHECK(part.device_pointer() == memory.data() + 2);
  CHECK(part.size() == 3);
  CHECK(span.subspan(8, 0).empty());
}

TEST_CASE("a view is a range of its elements") {
  std::array<float, 4> memory{1, 2, 3, 4};
  TensorView<float> const view(DeviceSpan<float>(memory.data(), memory.size()));
  view[1] = 5;
  CHECK(memory[1] == 5);
  CHECK(std::accumulate(view.begin(), view.end(), 0.0F) == 13);
  CHECK(HostSpan<float>(view).size() == 4);
  TensorView<float const> const constant = view;
  CHECK(constant.data() == memory.data());
  CHECK(TensorView<float>{}.empty());
}

TEST_CASE("a default device span is empty") {
  DeviceBytes const span;
  CHECK(span.empty());
  CHECK(span.device_pointer() == nullptr);
  CHECK(span.subspan(0, 0).empty());
}

}  // namespace span_test
