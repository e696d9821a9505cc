// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/model/batch.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace batch_test {

namespace {

using namespace roundpipe;
using test::error_of;

}  // namespace

TEST_CASE("a batch keeps the extents of each micro-batch") {
  Batch const equal(3, {2, 5});
  CHECK(equal.size() == 3);
  CHECK(equal.shape(2) == BatchShape{2, 5});
  Batch const varied({{1, 7}, {2, 3}});
  CHECK(varied.size() == 2);
  CHECK(varied.shape(1) == BatchShape{2, 3});
  auto const beyond = error_of([&] { static_cast<void>(varied.shape(2)); });
  CHECK(beyond.code() == Errc::invalid_argument);
  CHECK(beyond.message() == "the batch has 2 micro-batches, not number 2");
}

TEST_CASE("a batch without micro-batches is refused") {
  CHECK(error_of([] { Batch(std::vector<BatchShape>{}); }).code() == Errc::invalid_argument);
  CHECK(error_of([] { Batch(0, {1, 1}); }).code() == Errc::invalid_argument);
}

TEST_CASE("a batch of more micro-batches than any call has is refused") {
  CHECK(Batch(most_micro_batches, {1, 1}).size() == most_micro_batches);
  for (auto const count : {most_micro_batches + 1, static_cast<std::size_t>(-1)}) {
    auto const error = error_of([&] { Batch(count, {1, 1}); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(error.message() ==
          "a batch has at most " + std::to_string(most_micro_batches) + " micro-batches");
  }
}

TEST_CASE("a batch finds the caller's memory by name") {
  std::vector<std::int32_t> const tokens{1, 2, 3};
  std::vector<float> values{0.5F};
  Batch batch(1, {});
  batch.set("tokens", tokens).set("values", values);
  auto const bytes = batch.bytes("tokens", DType::i32);
  CHECK(static_cast<void const*>(bytes.data()) == tokens.data());
  CHECK(bytes.size() == 12);
  CHECK(batch.bytes("values", DType::f32).size() == 4);
  batch.set("values", HostSpan<float const>{});  // the last one wins
  CHECK(batch.bytes("values", DType::f32).empty());
}

TEST_CASE("a batch takes any contiguous range") {
  std::array<float, 3> const array{};
  std::int32_t list[5] = {};
  std::vector<BFloat16> halves(2);
  Batch batch(1, {});
  batch.set("array", array).set("list", list).set("halves", halves);
  CHECK(static_cast<void const*>(batch.bytes("array", DType::f32).data()) == array.data());
  CHECK(batch.bytes("array", DType::f32).size() == 12);
  CHECK(static_cast<void const*>(batch.bytes("list", DType::i32).data()) == list);
  CHECK(batch.bytes("list", DType::i32).size() == 20);
  CHECK(batch.bytes("halves", DType::bf16).size() == 4);
  batch.set("list", std::span(list).first<2>());  // a view may be temporary, its values stay
  CHECK(batch.bytes("list", DType::i32).size() == 8);
}

TEST_CASE("a missing tensor, or a tensor of another type, is named") {
  std::vector<std::int64_t> const tokens{1};
  Batch batch(1, {});
  batch.set("tokens", tokens);
  auto const missing = error_of([&] { static_cast<void>(batch.bytes("labels", DType::i32)); });
  CHECK(missing.code() == Errc::invalid_argument);
  CHECK(missing.message() == "the batch has no tensor named 'labels'");
  auto const retyped = error_of([&] { static_cast<void>(batch.bytes("tokens", DType::i32)); });
  CHECK(retyped.code() == Errc::invalid_argument);
  CHECK(retyped.message() == "the batch's tensor 'tokens' is i64, the model reads i32");
  auto const as_large = error_of([&] { static_cast<void>(batch.bytes("tokens", DType::f64)); });
  CHECK(as_large.message() == "the batch's tensor 'tokens' is i64, the model reads f64");
}

TEST_CASE("every tensor of a batch must be read by a layer") {
  std::vector<float> const values{1};
  Batch batch(1, {});
  batch.set("values", values);
  CHECK_NOTHROW(batch.require_read({{"more", {1}, DType::f32}, {"values", {1}, DType::f32}}));
  auto const unread = error_of([&] { batch.require_read({{"more", {1}, DType::f32}}); });
  CHECK(unread.code() == Errc::invalid_argument);
  CHECK(unread.message() == "no layer reads the batch's tensor 'values'");
}

TEST_CASE("extents fit into a capacity when each is positive and no larger") {
  BatchShape const capacity{3, 8};
  CHECK(capacity.fits(capacity));
  CHECK(BatchShape{1, 1}.fits(capacity));
  CHECK_FALSE(BatchShape{4, 1}.fits(capacity));
  CHECK_FALSE(BatchShape{1, 9}.fits(capacity));
  CHECK_FALSE(BatchShape{0, 1}.fits(capacity));
  CHECK_FALSE(BatchShape{1, 0}.fits(capacity));
  CHECK(capacity.positions() == 24);
}

}  // namespace batch_test
