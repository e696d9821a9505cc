// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/host_array.hpp>

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace host_array_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("a part begins and ends at whole elements of its array") {
  std::vector<std::byte> memory(24);
  HostArray const array{memory.data(), 12, DType::bf16};
  CHECK(array.present());
  CHECK(array.bytes().data() == memory.data());
  CHECK(array.bytes().size() == memory.size());

  auto const part = array.part(3, 7);
  CHECK(part.data == memory.data() + 6);
  CHECK(part.size == 4);
  CHECK(part.dtype == DType::bf16);
  CHECK(part.bytes().size() == 8);
  CHECK(array.part(12, 12).present());
  CHECK(array.part(12, 12).size == 0);
}

TEST_CASE("a part outside its array is refused") {
  std::vector<std::byte> memory(16);
  HostArray const array{memory.data(), 4, DType::f32};
  CHECK(error_of([&] { (void)array.part(0, 5); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { (void)array.part(3, 2); }).code() == Errc::invalid_argument);
}

TEST_CASE("the parts of an absent array are absent") {
  HostArray const absent;
  CHECK_FALSE(absent.present());
  CHECK_FALSE(absent.part(2, 5).present());
  CHECK(absent.bytes().empty());
}

}  // namespace host_array_test
