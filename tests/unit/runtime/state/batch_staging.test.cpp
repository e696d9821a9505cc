// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/state/batch_staging.hpp>

#include <roundpipe/model/shape_cache.hpp>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace batch_staging_test {

namespace {

using namespace roundpipe;
using test::error_of;

/// Two tensors: "tokens" has one number for each position, "extra" has three for each row.
BatchLayout layout_of(BatchShape shape) {
  return {
      {{"tokens", {shape.rows, shape.length}, DType::i32}, {"extra", {shape.rows, 3}, DType::u8}},
      {}};
}

struct Data {
  explicit Data(std::vector<BatchShape> shapes) : batch(shapes) {
    std::int64_t positions = 0;
    std::int64_t rows = 0;
    for (auto const shape : shapes) {
      positions += shape.positions();
      rows += shape.rows;
    }
    tokens.resize(static_cast<std::size_t>(positions));
    extra.resize(static_cast<std::size_t>(3 * rows));
    std::iota(tokens.begin(), tokens.end(), 100);
    std::iota(extra.begin(), extra.end(), std::uint8_t{0});
    batch.set("tokens", tokens).set("extra", extra);
  }
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> extra;
  Batch batch;
};

template <class T>
std::vector<T> values(HostTensor const& tensor) {
  auto const span = tensor.as<T>();
  return {span.begin(), span.end()};
}

}  // namespace

TEST_CASE("a batch is cut by the extents of its micro-batches") {
  Data const data({{2, 2}, {1, 3}, {1, 1}});
  auto const slices = slice_batch(data.batch, layout_of);
  REQUIRE(slices.size() == 3);
  for (auto const& tensors : slices) {
    REQUIRE(tensors.size() == 2);
  }
  CHECK(values<std::int32_t>(slices[0][0]) == std::vector<std::int32_t>{100, 101, 102, 103});
  CHECK(values<std::int32_t>(slices[1][0]) == std::vector<std::int32_t>{104, 105, 106});
  CHECK(values<std::int32_t>(slices[2][0]) == std::vector<std::int32_t>{107});
  CHECK(values<std::uint8_t>(slices[1][1]) == std::vector<std::uint8_t>{6, 7, 8});
  CHECK(slices[1][0].shape == Shape{1, 3});
  CHECK(slices[0][0].bytes.data() == reinterpret_cast<std::byte const*>(data.tokens.data()));
}

TEST_CASE("a tensor whose size does not match its micro-batches is named, with both sizes") {
  for (std::size_t const size : {0U, 6U, 8U}) {
    Data data({{2, 2}, {1, 3}});
    data.tokens.resize(size);
    data.batch.set("tokens", data.tokens);
    auto const error = error_of([&] { static_cast<void>(slice_batch(data.batch, layout_of)); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(error.message() == "the batch's tensor 'tokens' has " + std::to_string(4 * size) +
                                 " bytes; its 2 micro-batches want 28");
  }
}

TEST_CASE("tensors that no layer reads are refused by name, and so are missing ones") {
  Data data({{1, 1}});
  std::vector<float> const unread(17);
  data.batch.set("unread", unread);
  auto const error = error_of([&] { static_cast<void>(slice_batch(data.batch, layout_of)); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() == "no layer reads the batch's tensor 'unread'");
  Batch const empty(1, {1, 1});
  CHECK(error_of([&] { static_cast<void>(slice_batch(empty, layout_of)); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("tensors are staged at the table's offsets, with their own extents or the capacity's") {
  Data const data({{2, 2}, {1, 3}});
  auto const slices = slice_batch(data.batch, layout_of);
  for (auto const shape : {BatchShape{1, 3}, BatchShape{2, 100}}) {
    auto const table = layout_of(shape).tensors;
    std::vector<std::byte> memory(table.bytes(), std::byte{0xAA});
    stage_tensors(slices[1], table, memory);
    CHECK(std::memcmp(memory.data(), data.tokens.data() + 4, 12) == 0);
    CHECK(memory[12] == std::byte{0xAA});
    CHECK(std::memcmp(memory.data() + table.offset(1), data.extra.data() + 6, 3) == 0);
  }
  auto const table = layout_of({1, 3}).tensors;
  std::vector<std::byte> memory(table.bytes());
  CHECK(error_of([&] { stage_tensors(slices[1], table, HostBytes(memory).first(256)); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([&] { stage_tensors(slices[0], table, memory); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([&] { stage_tensors({}, table, memory); }).code() == Errc::invalid_argument);
}

TEST_CASE("the last layer counts the loss terms, from its own side inputs") {
  auto const model = test::toy_model({.dense = 1});
  test::ToyData data({{2, 3}, {1, 2}}, 1);
  data.mask() = {1, 0, 1, 1, 0, 0, /* the second */ 0, 7};
  auto const batch = data.batch();
  ShapeCache shapes(model, {2, 3});
  auto const slices = slice_batch(
      batch, [&](BatchShape shape) -> BatchLayout const& { return shapes.at(shape).batch; });
  CHECK(count_loss_terms(model, batch, shapes.capacity().batch, slices) == 4);
  auto const& last = shapes.capacity().batch.of_layer.back();
  std::vector<HostTensor> const second{slices[1][last[0]], slices[1][last[1]]};
  CHECK(count_loss_terms(model, {1, 2}, second) == 1);
}

TEST_CASE("a number of loss terms that cannot be is refused, by layer and rule") {
  struct Any : test::ToyLoss {
    std::function<std::int64_t()> count;
    std::int64_t loss_terms(std::span<HostTensor const>, BatchShape) const { return count(); }
  };
  auto const refusal = [](std::function<std::int64_t()> count) {
    Any loss;
    loss.count = std::move(count);
    return error_of(
        [&] { (void)count_loss_terms(Sequential{test::ToyInput{}, loss}, {1, 1}, {}); });
  };
  std::string const broken = "layer 1 (toy loss): Layer::loss_terms breaks rule 13: ";
  for (std::int64_t const terms :
       {std::int64_t{-1}, most_loss_terms + 1, std::numeric_limits<std::int64_t>::max()}) {
    auto const error = refusal([terms] { return terms; });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(error.message() == broken + "it is " + std::to_string(terms));
  }
  for (std::int64_t const terms : {std::int64_t{0}, most_loss_terms}) {
    CHECK(refusal([terms] { return terms; }).message() == "nothing was thrown");
  }
  auto const thrown = refusal([]() -> std::int64_t { throw std::range_error("no labels"); });
  CHECK(thrown.code() == Errc::invalid_argument);
  CHECK(thrown.message() == broken + "no labels");
}

TEST_CASE("the factor of a loss is one over its terms, and 0 without terms") {
  CHECK(gradient_scale_of(0) == 0);
  CHECK(gradient_scale_of(1) == 1);
  CHECK(gradient_scale_of(3) == 1.0 / 3.0);
}

}  // namespace batch_staging_test
