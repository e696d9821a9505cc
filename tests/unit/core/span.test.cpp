// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/span.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <iterator>
#include <type_traits>

namespace span_test {

namespace {

using roundpipe::DeviceBytes;
using roundpipe::DeviceSpan;
using roundpipe::HostBytes;
using roundpipe::HostSpan;

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

static_assert(std::is_trivially_copyable_v<DeviceSpan<float>>);  // for kernels

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

TEST_CASE("a default device span is empty") {
  DeviceBytes const span;
  CHECK(span.empty());
  CHECK(span.device_pointer() == nullptr);
  CHECK(span.subspan(0, 0).empty());
}

}  // namespace span_test
