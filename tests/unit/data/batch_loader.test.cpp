// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/data/batch_loader.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/data/dataset.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/made_documents.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace batch_loader_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

Dataset made_dataset(std::uint64_t seed = 4) {
  DatasetOptions options;
  options.context = 8;
  options.held_out_every = 5;
  options.seed = seed;
  return {{source_of(made_documents({70, 33, 9})), source_of(made_documents({40}, 500, true), 0.5)},
          options};
}

}  // namespace

TEST_CASE("batches are those of the dataset, whatever is read ahead by how many threads") {
  auto const data = made_dataset();
  BatchRows const cut{.rows = 5, .micro_batch_rows = 2};
  for (std::size_t const threads : {1, 3}) {
    for (std::size_t const depth : {1, 4}) {
      BatchLoader loader(data, cut, data.position(3), {depth, threads});
      TokenBatch wanted;
      for (std::uint64_t step = 0; step < 30; ++step) {
        CHECK(loader.position() == data.position(3 + 5 * step));
        auto const& batch = loader.next();
        data.read(3 + 5 * step, cut, wanted);
        CHECK(std::ranges::equal(batch.tokens(), wanted.tokens()));
        CHECK(std::ranges::equal(batch.labels(), wanted.labels()));
        CHECK(batch.shapes() == wanted.shapes());
        CHECK(batch.view().size() == 3);
      }
    }
  }
}

TEST_CASE("a loader goes on from the position of another, with batches of another size") {
  auto const data = made_dataset();
  Tokens through;
  Tokens resumed;
  BatchLoader whole(data, {.rows = 12, .micro_batch_rows = 4}, data.position());
  for (int step = 0; step < 5; ++step) {
    auto const& batch = whole.next();
    through.insert(through.end(), batch.tokens().begin(), batch.tokens().end());
  }
  auto position = data.position();
  for (std::uint64_t const rows : {7, 1, 20, 32}) {
    BatchLoader loader(data, {.rows = rows, .micro_batch_rows = 3}, position);
    auto const& batch = loader.next();
    resumed.insert(resumed.end(), batch.tokens().begin(), batch.tokens().end());
    position = loader.position();
  }
  CHECK(position == whole.position());
  CHECK(resumed == through);
}

TEST_CASE("a position of another dataset is refused") {
  auto const data = made_dataset();
  auto const other = made_dataset(5);
  CHECK(error_of([&] { BatchLoader(data, {}, other.position()); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("a bad token is the error of its batch") {
  Tokens const tokens{1, 2, 3, 4, 5, 60, 7, 8};
  DatasetOptions options;
  options.context = 2;
  options.shuffles = false;
  options.reads_all = false;
  Dataset const data(
      {{TokenDocuments(
          {.name = "lies", .vocabulary = 50, .tokens = std::as_bytes(std::span(tokens))})}},
      options);
  BatchLoader loader(data, {.rows = 1, .micro_batch_rows = 1}, data.position());
  (void)loader.next();
  (void)loader.next();
  for (int again = 0; again < 2; ++again) {
    auto const error = error_of([&] { (void)loader.next(); });
    CHECK(error.code() == Errc::bad_file);
    CHECK(contains(error.message(), "'lies': token 5 is 60"));
    CHECK(loader.position() == data.position(2));
  }
}

}  // namespace batch_loader_test
