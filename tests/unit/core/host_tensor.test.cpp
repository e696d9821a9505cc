// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/host_tensor.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace host_tensor_test {

namespace {

using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::HostSpan;
using roundpipe::HostTensor;

}  // namespace

TEST_CASE("a host tensor can be read as its own element type only") {
  std::vector<std::int32_t> const labels{3, 1, 4, 1, 5, 9};
  HostTensor const tensor{std::as_bytes(std::span(labels)), {2, 3}, DType::i32};
  auto const read = tensor.as<std::int32_t>();
  static_assert(std::is_same_v<decltype(read), HostSpan<std::int32_t const> const>);
  CHECK(std::ranges::equal(read, labels));
  CHECK(tensor.as<std::int32_t const>().size() == 6);
  auto const error = roundpipe::test::error_of([&] { (void)tensor.as<float>(); });
  CHECK(error.code() == Errc::invalid_argument);
}

TEST_CASE("a host tensor smaller than its memory reads as many elements as its shape has") {
  std::vector<float> const memory(10);
  HostTensor const tensor{std::as_bytes(std::span(memory)), {2, 2}, DType::f32};
  CHECK(tensor.as<float>().size() == 4);
}

}  // namespace host_tensor_test
