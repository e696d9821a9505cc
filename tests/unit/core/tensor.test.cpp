// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/tensor.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace tensor_test {

namespace {

using roundpipe::BFloat16;
using roundpipe::Bytes;
using roundpipe::DeviceBytes;
using roundpipe::DeviceTensor;
using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::Shape;
using roundpipe::tensor_alignment_bytes;
using roundpipe::TensorCarver;
using roundpipe::TensorSpec;
using roundpipe::TensorTable;
using roundpipe::test::error_of;

static_assert(Shape{}.rank() == 0 && Shape{}.size() == 1);
static_assert(Shape{2, 3, 4}.rank() == 3 && Shape{2, 3, 4}.size() == 24);
static_assert(Shape{2, 3, 4}[1] == 3);
static_assert(Shape{2, 3} == Shape{2, 3});
static_assert(Shape{2, 3} != Shape{3, 2});
static_assert(Shape{2} != Shape{2, 1});
static_assert(Shape{} != Shape{1});

/// Host memory that stands for device memory.
struct Block {
  alignas(tensor_alignment_bytes) std::array<std::byte, 4096> memory{};
  [[nodiscard]] DeviceBytes bytes() { return {memory.data(), memory.size()}; }
  [[nodiscard]] DeviceBytes bytes(std::size_t size) { return {memory.data(), size}; }
};

}  // namespace

TEST_CASE("a shape with an empty extent has no elements") {
  CHECK(Shape{4, 0, 5}.size() == 0);
}

TEST_CASE("shapes of more than six extents and negative extents are refused") {
  CHECK(Shape{1, 2, 3, 4, 5, 6}.rank() == Shape::max_rank);
  CHECK(error_of([] { (void)Shape{1, 2, 3, 4, 5, 6, 7}; }).code() == Errc::invalid_argument);
  CHECK(error_of([] { (void)Shape{4, -1}; }).code() == Errc::invalid_argument);
}

TEST_CASE("shapes with more than 2^31 elements are counted correctly") {
  CHECK(Shape{1 << 20, 1 << 20}.size() == std::size_t{1} << 40);
}

TEST_CASE("shapes and tables have readable text") {
  CHECK(to_string(Shape{}) == "[]");
  CHECK(to_string(Shape{7}) == "[7]");
  CHECK(to_string(Shape{2, 3}) == "[2, 3]");
  CHECK(to_string(TensorTable{}) == "{}");
  CHECK(to_string(TensorTable{{"x", {2, 3}, DType::bf16}, {"ids", {5}, DType::i32}}) ==
        "{x bf16[2, 3], ids i32[5]}");
}

TEST_CASE("the bytes of a tensor are the bytes of its elements, without padding") {
  CHECK(TensorSpec{"x", {3, 5}, DType::bf16}.bytes() == 30);
  CHECK(TensorSpec{"x", {}, DType::f64}.bytes() == 8);
  CHECK(TensorSpec{"x", {0}, DType::f64}.bytes() == 0);
}

TEST_CASE("the tensors of a table follow each other, each aligned") {
  TensorTable table{{"a", {1}, DType::u8}, {"b", {64}, DType::f32}};
  CHECK(table.add({"c", {65}, DType::f32}) == 2);
  CHECK(table.add({"empty", {0}, DType::f32}) == 3);
  CHECK(table.add({"d", {3}, DType::bf16}) == 4);
  REQUIRE(table.size() == 5);
  CHECK(table.offset(0) == 0);
  CHECK(table.offset(1) == 256);
  CHECK(table.offset(2) == 512);
  CHECK(table.offset(3) == 1024);
  CHECK(table.offset(4) == 1024);
  CHECK(table.bytes() == 1280);
  CHECK(table.content_bytes() == 1024 + 6);
  std::size_t end = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CHECK(table.offset(i) % tensor_alignment_bytes == 0);
    CHECK(table.offset(i) >= end);
    end = table.offset(i) + table[i].bytes();
  }
  CHECK(end <= table.bytes());
}

TEST_CASE("tensors without elements take no bytes in a table, at any place") {
  TensorTable const table{{"first", {0, 4}, DType::f32},
                          {"a", {3}, DType::f16},
                          {"between", {4, 0, 2}, DType::f64},
                          {"again", {0}, DType::u8},
                          {"b", {65}, DType::f32},
                          {"last", {0, 0}, DType::i64}};
  std::size_t const offsets[] = {0, 0, 256, 256, 256, 768};
  std::size_t elements = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CHECK(table.offset(i) == offsets[i]);
    elements += table[i].shape.size();
    CHECK((table[i].bytes() == 0) == (table[i].shape.size() == 0));
  }
  CHECK(elements == 3 + 65);
  CHECK(table.bytes() == 768);
  Block block;
  auto const tensors = views(table, block.bytes(table.bytes()));
  REQUIRE(tensors.size() == table.size());
  TensorCarver carver(block.bytes(table.bytes()));
  for (std::size_t i = 0; i < table.size(); ++i) {
    CHECK(tensors[i].present());
    CHECK(tensors[i].shape() == table[i].shape);
    CHECK(tensors[i].size_bytes() == table[i].bytes());
    CHECK(carver.take(table[i].shape, table[i].dtype).device_pointer() ==
          tensors[i].device_pointer());
  }
  CHECK(carver.used_bytes() == table.bytes());
  CHECK(to_string(table[0].shape) == "[0, 4]");
}

TEST_CASE("a table that holds only empty tensors needs no memory") {
  TensorTable const table{{"a", {0, 4}, DType::f32}, {"b", {2, 0}, DType::bf16}};
  CHECK(table.bytes() == 0);
  CHECK(table.content_bytes() == 0);
  CHECK(TensorTable{}.content_bytes() == 0);
  auto const tensors = views(table, DeviceBytes{});
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].shape() == Shape{0, 4});
  CHECK(tensors[1].as<BFloat16>().empty());
  CHECK(tensors[0].reshaped({7, 0}).shape() == Shape{7, 0});
  TensorCarver carver{DeviceBytes{}};
  CHECK(carver.take({0, 4}, DType::f32).size() == 0);
  CHECK(carver.used_bytes() == 0);
  Block block;
  TensorCarver full(block.bytes(256));
  (void)full.take({64}, DType::f32);
  CHECK(full.take({0}, DType::f32).size() == 0);  // at the end, where no room is left
}

TEST_CASE("an empty table takes no bytes") {
  TensorTable const table;
  CHECK(table.empty());
  CHECK(table.bytes() == 0);
  CHECK(table.begin() == table.end());
}

TEST_CASE("tables are equal when their names, shapes and types are") {
  TensorTable const table{{"a", {2}, DType::f32}};
  CHECK(table == TensorTable{{"a", {2}, DType::f32}});
  CHECK(table != TensorTable{{"b", {2}, DType::f32}});
  CHECK(table != TensorTable{{"a", {3}, DType::f32}});
  CHECK(table != TensorTable{{"a", {2}, DType::i32}});
  CHECK(table != TensorTable{});
}

TEST_CASE("views of a block have the offsets of its table") {
  Block block;
  TensorTable const table{{"a", {3}, DType::f64}, {"b", {2, 2}, DType::bf16}};
  auto const tensors = views(table, block.bytes(table.bytes()));
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].device_pointer() == block.memory.data());
  CHECK(tensors[1].device_pointer() == block.memory.data() + 256);
  CHECK(tensors[1].shape() == Shape{2, 2});
  CHECK(tensors[1].dtype() == DType::bf16);
  CHECK(tensors[1].size() == 4);
  CHECK(tensors[1].size_bytes() == 8);
}

TEST_CASE("a device tensor can be read as its own element type only") {
  Block block;
  DeviceTensor const tensor(block.bytes(), {4}, DType::bf16);
  CHECK(tensor.present());
  auto const elements = tensor.as<BFloat16>();
  CHECK(elements.size() == 4);
  CHECK(static_cast<void*>(elements.device_pointer()) == block.memory.data());
  static_assert(
      std::is_same_v<decltype(tensor.as<BFloat16 const>()), roundpipe::TensorView<BFloat16 const>>);
  CHECK(tensor.as<BFloat16 const>().size() == 4);
  CHECK(error_of([&] { (void)tensor.as<float>(); }).code() == Errc::invalid_argument);
  CHECK(DeviceTensor{}.as<float>().empty());
  CHECK(DeviceTensor{}.as<BFloat16>().empty());  // whatever the type of a tensor that is not there
}

TEST_CASE("a carver hands out typed views") {
  Block block;
  TensorCarver carver(block.bytes());
  CHECK(carver.take<float>({3}).size() == 3);
  CHECK(static_cast<void*>(carver.take<BFloat16>({2, 2}).data()) == block.memory.data() + 256);
  CHECK(carver.used_bytes() == 512);
  TensorCarver counts;
  CHECK(counts.take<float>({3}).empty());
  CHECK(counts.used_bytes() == 256);
}

TEST_CASE("a device tensor can only be reshaped to the same number of elements") {
  Block block;
  DeviceTensor const tensor(block.bytes(), {4, 6}, DType::f32);
  auto const flat = tensor.reshaped({24});
  CHECK(flat.shape() == Shape{24});
  CHECK(flat.device_pointer() == tensor.device_pointer());
  CHECK(error_of([&] { (void)tensor.reshaped({25}); }).code() == Errc::invalid_argument);
}

TEST_CASE("an empty device tensor is not present") {
  CHECK_FALSE(DeviceTensor{}.present());
}

TEST_CASE("a carver hands out aligned tensors one after another") {
  Block block;
  TensorCarver carver(block.bytes());
  auto const a = carver.take({3}, DType::f32);
  auto const b = carver.take({100}, DType::f64);
  auto const c = carver.take({1}, DType::u8);
  CHECK(a.device_pointer() == block.memory.data());
  CHECK(b.device_pointer() == block.memory.data() + 256);
  CHECK(c.device_pointer() == block.memory.data() + 1280);
  CHECK(b.shape() == Shape{100});
  CHECK(b.dtype() == DType::f64);
  CHECK(carver.used_bytes() == 1536);
}

TEST_CASE("a carver without a block counts the bytes that a carver with a block hands out") {
  Block block;
  TensorCarver counts;
  TensorCarver carves(block.bytes());
  for (auto const& shape : {Shape{1}, Shape{64}, Shape{65}, Shape{0}, Shape{3, 7}}) {
    CHECK_FALSE(counts.take(shape, DType::f32).present());
    CHECK(carves.take(shape, DType::f32).present());
    CHECK(counts.used_bytes() == carves.used_bytes());
  }
}

TEST_CASE("a carver of two blocks goes on in the second where a tensor ends the first") {
  Block block;
  for (Bytes const first : {0, 256, 512, 1024}) {
    auto const rest = block.bytes().subspan(2048, 1024 - first);
    TensorCarver carver(block.bytes(first), rest);
    for (Bytes used = 0; used < 1024; used += 256) {
      auto const tensor = carver.take({64}, DType::f32);
      CHECK(tensor.device_pointer() ==
            block.memory.data() + (used < first ? used : 2048 + used - first));
      CHECK(carver.used_bytes() == used + 256);
    }
    CHECK(error_of([&] { (void)carver.take({1}, DType::u8); }).code() == Errc::over_budget);
  }
  TensorCarver across(block.bytes(256), block.bytes().subspan(2048, 1024));
  CHECK(error_of([&] { (void)across.take({65}, DType::f32); }).code() == Errc::over_budget);
}

TEST_CASE("a carver packs like a table") {
  TensorTable const table{{"a", {1}, DType::u8}, {"b", {64}, DType::f32}, {"c", {65}, DType::bf16}};
  TensorCarver counts;
  for (auto const& spec : table) {
    (void)counts.take(spec.shape, spec.dtype);
  }
  CHECK(counts.used_bytes() == table.bytes());
}

TEST_CASE("a carver refuses more than its block holds") {
  Block block;
  TensorCarver carver(block.bytes(300));
  (void)carver.take({8}, DType::f32);
  CHECK(error_of([&] { (void)carver.take({12}, DType::f32); }).code() == Errc::over_budget);
  TensorCarver exact(block.bytes(300));
  (void)exact.take({8}, DType::f32);
  CHECK(exact.take({11}, DType::f32).present());  // down to the last byte, without padding
  CHECK(error_of([&] { (void)exact.take({1}, DType::u8); }).code() == Errc::over_budget);
  TensorCarver empty{DeviceBytes{}};
  CHECK(error_of([&] { (void)empty.take({1}, DType::u8); }).code() == Errc::over_budget);
}

}  // namespace tensor_test
