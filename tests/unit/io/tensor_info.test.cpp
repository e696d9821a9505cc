// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/tensor_info.hpp>

#include <support/contains.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tensor_info_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

std::string fault_of(TensorInfo const& tensor) {
  auto const checked = checked_bytes(tensor);
  return checked.field == nullptr ? "" : checked.field + (" " + checked.fault);
}

}  // namespace

TEST_CASE("every element type of ours has its own name in files, and the same size") {
  for (auto const type :
       {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
    auto const* const found = find_file_dtype(file_name_of(type));
    REQUIRE(found != nullptr);
    CHECK(found->type == type);
    CHECK(found->bits == 8 * size_of(type));
  }
  CHECK(file_name_of(DType::bf16) == "BF16");
  CHECK(find_file_dtype("bf16") == nullptr);
  CHECK(find_file_dtype("") == nullptr);
}

TEST_CASE("element types have different names, and later ones are no smaller") {
  std::set<std::string_view> names;
  std::size_t bits = 0;
  for (auto const& type : file_dtypes) {
    CHECK(names.insert(type.name).second);
    if (type.name != "F4" && type.name != "F6_E2M3" && type.name != "F6_E3M2") {
      CHECK(type.bits >= bits);
      bits = type.bits;
    }
  }
}

TEST_CASE("a tensor of ours is described as files do it") {
  auto const info = tensor_info({"w", {2, 3}, DType::bf16});
  CHECK(info == TensorInfo{"w", "BF16", {2, 3}});
  CHECK(info.type() == DType::bf16);
  CHECK(info.shape() == Shape{2, 3});
  CHECK(info.size() == 6);
  CHECK(info.bytes() == 12);
  CHECK(to_string(info) == "BF16[2, 3]");
  CHECK(tensor_info({"s", {}, DType::f64}).extents.empty());
  CHECK(TensorInfo{"s", "F64", {}}.bytes() == 8);
  CHECK(TensorInfo{"q", "F4", {2, 3}}.bytes() == 3);
  CHECK(TensorInfo{"q", "I8", {2}}.type() == std::nullopt);
}

TEST_CASE("shapes of every rank that layers know, and of none beyond") {
  std::vector<std::int64_t> extents;
  for (std::size_t rank = 0; rank <= Shape::max_rank; ++rank) {
    auto const shape = TensorInfo{"w", "U8", extents}.shape();
    REQUIRE(shape.rank() == rank);
    for (std::size_t i = 0; i < rank; ++i) {
      CHECK(shape[i] == static_cast<std::int64_t>(i + 2));
    }
    extents.push_back(static_cast<std::int64_t>(rank + 2));
  }
  auto const error = error_of([&] { (void)TensorInfo{"deep", "U8", extents}.shape(); });
  CHECK(error.code() == Errc::unsupported);
  CHECK(contains(error.message(), "'deep' has 7 extents"));
}

TEST_CASE("types and extents that no file can hold are told apart") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(checked_bytes({"w", "F32", {2, 3}}).bytes == 24);
  CHECK(checked_bytes({"w", "F32", {0, 3}}).bytes == 0);
  CHECK(checked_bytes({"w", "U8", std::vector<std::int64_t>(64, 1)}).bytes == 1);
  CHECK(fault_of({"w", "F32", {0, 3}}).empty());
  CHECK(contains(fault_of({"w", "F7", {1}}),
                 "dtype is 'F7', which the format does not know; it knows BOOL, "));
  CHECK(contains(fault_of({"w", "F32", {2, -1}}), "shape has the extent -1"));
  CHECK(contains(fault_of({"w", "F32", {0, -1}}), "shape has the extent -1"));
  CHECK(contains(fault_of({"w", "U8", {most, 2}}), "which no file can hold"));
  CHECK(contains(fault_of({"w", "U8", {most, most, most}}), "which no file can hold"));
  CHECK(contains(fault_of({"w", "F64", {most}}), "which no file can hold"));
  CHECK(contains(fault_of({"w", "U8", {most, most, 0}}), "which no file can hold"));
  CHECK(contains(fault_of({"w", "U8", std::vector<std::int64_t>(65, 1)}), "has 65 extents"));
  CHECK(contains(fault_of({"w", "F4", {3}}), "has 3 elements of 4 bits, which are no whole bytes"));
  CHECK(fault_of({"w", "F6_E2M3", {4}}).empty());
}

}  // namespace tensor_info_test
