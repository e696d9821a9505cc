// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/data/dataset.hpp>

#include <roundpipe/core/error.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/made_documents.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dataset_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// Two files: tokens 0 to 59 in documents of several sizes, and 1000 to 1024 with masks.
std::vector<DataSource> two_sources(double first_weight = 1, double second_weight = 1) {
  return {source_of(made_documents({7, 20, 1, 12, 20}), first_weight, "first"),
          source_of(made_documents({10, 10, 5}, 1000, true), second_weight, "second")};
}

DatasetOptions options_of(std::uint64_t context) {
  DatasetOptions options;
  options.context = context;
  return options;
}

/// The tokens and the labels of \p count rows of the training from \p position on.
std::pair<Tokens, Tokens> read_rows(Dataset const& data,
                                      std::uint64_t position,
                                      std::uint64_t count) {
  TokenBatch batch;
  data.read(position, {.rows = count, .micro_batch_rows = count}, batch);
  return {Tokens(batch.tokens().begin(), batch.tokens().end()),
          Tokens(batch.labels().begin(), batch.labels().end())};
}

std::pair<Tokens, Tokens> read_held_out(Dataset const& data) {
  TokenBatch batch;
  auto const count = data.held_out_rows();
  CHECK(data.read_held_out(0, {.rows = count, .micro_batch_rows = count}, batch) == count);
  return {Tokens(batch.tokens().begin(), batch.tokens().end()),
          Tokens(batch.labels().begin(), batch.labels().end())};
}

}  // namespace

TEST_CASE("without shuffling an epoch is the files, row by row") {
  auto options = options_of(20);
  options.shuffles = false;
  Dataset const data(two_sources(), options);
  CHECK(data.sources() == 2);
  CHECK(data.rows_per_epoch() == 5);  // 3, and 1 and a quarter
  CHECK(data.held_out_rows() == 0);
  auto const [tokens, labels] = read_rows(data, 0, 10);
  for (std::size_t i = 0; i < 200; ++i) {
    auto const at = static_cast<std::int32_t>(i % 100);
    auto const token = at < 60 ? at : at < 85 ? 940 + at : 0;
    CHECK(tokens[i] == token);
    std::set<std::int32_t> const lasts{6, 26, 27, 39, 59, 1009, 1019, 1024};
    bool const ignored =
        at >= 85 || lasts.contains(token) || (token >= 1000 && (token + 1) % 3 == 0);
    CHECK(labels[i] == (ignored ? ignored_label : token + 1));
  }
}

TEST_CASE("a batch is cut into micro-batches, the last with what is left, and rows stay the same") {
  Dataset const data(two_sources(), options_of(8));
  auto const [tokens, labels] = read_rows(data, 3, 7);
  TokenBatch batch;
  for (std::uint64_t const micro : {1, 2, 3, 7, 100}) {
    data.read(3, {.rows = 7, .micro_batch_rows = micro}, batch);
    CHECK(std::ranges::equal(batch.tokens(), tokens));
    CHECK(std::ranges::equal(batch.labels(), labels));
    auto const count = (7 + micro - 1) / micro;
    REQUIRE(batch.shapes().size() == count);
    for (std::size_t m = 0; m < count; ++m) {
      auto const rows = std::min(micro, 7 - m * micro);
      CHECK(batch.shapes()[m] == BatchShape{static_cast<std::int64_t>(rows), 8});
    }
  }
}

TEST_CASE("shuffled, an epoch still has every token once") {
  auto options = options_of(7);
  options.seed = 3;
  Dataset const data(two_sources(), options);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    auto tokens = read_rows(data, epoch * data.rows_per_epoch(), data.rows_per_epoch()).first;
    CHECK_FALSE(std::is_sorted(tokens.begin(), tokens.end()));
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::remove(tokens.begin(), tokens.end(), 0), tokens.end());  // padding, and one
    Tokens wanted;
    for (std::int32_t token = 1; token < 60; ++token) {
      wanted.push_back(token);
    }
    for (std::int32_t token = 1000; token < 1025; ++token) {
      wanted.push_back(token);
    }
    CHECK(tokens == wanted);
  }
}

TEST_CASE("what is held out is never trained on, not even as a label") {
  for (auto const packing : {RowPacking::packed, RowPacking::document_per_row}) {
    for (std::uint64_t const every : {2, 3, 4}) {
      auto options = options_of(3);
      options.packing = packing;
      options.held_out_every = every;
      options.seed = every;
      options.padding_token = 99999;
      Dataset const data(two_sources(1, 2.5), options);
      auto const [held_tokens, held_labels] = read_held_out(data);
      auto const [tokens, labels] = read_rows(data, 0, 4 * data.rows_per_epoch());
      auto const sources = data.held_out(0).held_out() + data.held_out(1).held_out();
      CHECK(data.held_out_rows() == sources);
      auto const set_of = [](Tokens const& a, Tokens const& b) {
        std::set<std::int32_t> numbers(a.begin(), a.end());
        numbers.insert(b.begin(), b.end());
        numbers.erase(ignored_label);
        numbers.erase(99999);
        return numbers;
      };
      auto const held = set_of(held_tokens, held_labels);
      auto const trained = set_of(tokens, labels);
      std::vector<std::int32_t> both;
      std::set_intersection(
          held.begin(), held.end(), trained.begin(), trained.end(), std::back_inserter(both));
      CHECK(both.empty());
      if (packing == RowPacking::packed) {
        CHECK(held.size() + trained.size() == 85);
      }
    }
  }
}

TEST_CASE("held-out rows come file by file, and end") {
  auto options = options_of(5);
  options.held_out_every = 3;
  Dataset const data(two_sources(), options);
  REQUIRE(data.held_out_rows() == 5);  // of 12 rows and of 5
  auto const all = read_held_out(data).first;
  CHECK(std::is_sorted(all.begin(), all.end()));
  TokenBatch batch;
  Tokens parts;
  std::uint64_t at = 0;
  while (auto const count = data.read_held_out(at, {.rows = 2, .micro_batch_rows = 2}, batch)) {
    parts.insert(parts.end(), batch.tokens().begin(), batch.tokens().end());
    at += count;
  }
  CHECK(at == 5);
  CHECK(parts == all);
  CHECK(data.read_held_out(100, {}, batch) == 0);
}

TEST_CASE("rows of documents are padded to the context, or to the longest of their micro-batch") {
  auto options = options_of(16);
  options.packing = RowPacking::document_per_row;
  options.shuffles = false;
  options.padding_token = 7;
  std::vector<DataSource> const sources{source_of(made_documents({3, 5, 9, 1, 20, 16}))};
  TokenBatch batch;
  Dataset(sources, options).read(0, {.rows = 6, .micro_batch_rows = 2}, batch);
  CHECK(batch.shapes() == std::vector<BatchShape>{{2, 16}, {2, 16}, {2, 16}});
  CHECK(batch.predictions() == 2 + 4 + 8 + 0 + 16 + 15);
  CHECK(batch.tokens()[3] == 7);

  options.pad_to_multiple = 4;
  Dataset const data(sources, options);
  data.read(0, {.rows = 6, .micro_batch_rows = 2}, batch);
  CHECK(batch.shapes() == std::vector<BatchShape>{{2, 8}, {2, 12}, {2, 16}});
  CHECK(batch.predictions() == 2 + 4 + 8 + 0 + 16 + 15);
  CHECK(Tokens(batch.tokens().begin(), batch.tokens().begin() + 16) ==
        Tokens{0, 1, 2, 7, 7, 7, 7, 7, 3, 4, 5, 6, 7, 7, 7, 7});
  CHECK(Tokens(batch.labels().begin(), batch.labels().begin() + 8) ==
        Tokens{1, 2, -100, -100, -100, -100, -100, -100});
  data.read(0, {.rows = 3, .micro_batch_rows = 1}, batch);
  CHECK(batch.shapes() == std::vector<BatchShape>{{1, 4}, {1, 8}, {1, 12}});

  Dataset({source_of(made_documents({8, 1, 12}))}, options)
      .read(0, {.rows = 3, .micro_batch_rows = 2}, batch);
  CHECK(batch.shapes() == std::vector<BatchShape>{{2, 8}, {1, 12}});  // none is rounded up

  options.pad_to_multiple = 11;  // the context ends the rounding
  Dataset(sources, options).read(2, {.rows = 2, .micro_batch_rows = 1}, batch);
  CHECK(batch.shapes() == std::vector<BatchShape>{{1, 11}, {1, 11}});
  Dataset(sources, options).read(4, {.rows = 1, .micro_batch_rows = 1}, batch);
  CHECK(batch.shapes() == std::vector<BatchShape>{{1, 16}});
}

TEST_CASE("a position belongs to files and options, but not to how batches are cut") {
  auto options = options_of(8);
  options.held_out_every = 4;
  options.seed = 5;
  Dataset const data(two_sources(), options);
  auto const position = data.position(17);
  CHECK(position.rows == 17);
  data.require_own(position);
  auto const accepts = [&](std::vector<DataSource> sources, DatasetOptions const& changed) {
    Dataset const other(std::move(sources), changed);
    auto const error = error_of([&] { other.require_own(position); });
    CHECK((!error.code() || error.code() == Errc::invalid_argument));
    return !error.code();
  };
  auto const with = [&](auto const& change) {
    auto changed = options;
    change(changed);
    return accepts(two_sources(), changed);
  };
  CHECK(accepts(two_sources(), options));
  CHECK(with([](auto& o) { o.reads_all = false; }));
  CHECK(with([](auto& o) { o.vocabulary = 5000; }));
  CHECK_FALSE(with([](auto& o) { o.seed = 6; }));
  CHECK_FALSE(with([](auto& o) { o.context = 9; }));
  CHECK_FALSE(with([](auto& o) { o.packing = RowPacking::document_per_row; }));
  CHECK_FALSE(with([](auto& o) { o.shuffles = false; }));
  CHECK_FALSE(with([](auto& o) { o.held_out_every = 5; }));
  CHECK_FALSE(accepts(two_sources(2), options));
  CHECK_FALSE(accepts({two_sources()[0]}, options));
  CHECK_FALSE(accepts({two_sources()[1], two_sources()[0]}, options));
  CHECK_FALSE(accepts({two_sources()[0], source_of(made_documents({10, 15}))}, options));
  CHECK_FALSE(accepts({two_sources()[0], source_of(made_documents({10, 10, 6}))}, options));
  options.seed = 6;
  CHECK(contains(error_of([&] { Dataset(two_sources(), options).require_own(position); }).message(),
                 "another seed"));
}

TEST_CASE("a dataset keeps what its sources own") {
  std::weak_ptr<void const> watch;
  {
    std::vector<DataSource> sources{source_of(made_documents({30}))};
    watch = sources[0].owner;
    auto const data = std::make_unique<Dataset const>(std::move(sources), options_of(30));
    sources.clear();
    CHECK_FALSE(watch.expired());
    CHECK(read_rows(*data, 0, 1).first.at(29) == 29);
  }
  CHECK(watch.expired());
}

TEST_CASE("options out of their domain are refused") {
  auto const refusal = [](auto const& change, std::vector<DataSource> sources = two_sources()) {
    auto options = options_of(8);
    change(options);
    auto const error = error_of([&] { Dataset(std::move(sources), options); });
    CHECK(error.code() == Errc::invalid_argument);
    return error.message();
  };
  auto const nothing = [](auto&) {};
  CHECK(contains(refusal([](auto& o) { o.context = 0; }), "context"));
  CHECK(contains(refusal([](auto& o) { o.context = token_limit; }), "context"));
  CHECK(contains(refusal([](auto& o) { o.held_out_every = 1; }), "none to train on"));
  CHECK(contains(refusal([](auto& o) { o.padding_token = -1; }), "padding token"));
  CHECK(contains(refusal([](auto& o) {
                   o.vocabulary = 2000;
                   o.padding_token = 2000;
                 }),
                 "padding token"));
  CHECK(contains(refusal([](auto& o) { o.pad_to_multiple = 8; }), "packed rows"));
  CHECK(contains(refusal(nothing, {}), "needs a source"));
  CHECK(contains(refusal(nothing, two_sources(0)), "source 0"));
  CHECK(contains(refusal([](auto& o) { o.held_out_every = 5; }, {source_of(made_documents({8}))}),
                 "single row"));
  Dataset const data(two_sources(), options_of(8));
  TokenBatch batch;
  CHECK(error_of([&] { data.read(0, {.rows = 0}, batch); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { data.read(0, {.rows = 1, .micro_batch_rows = 0}, batch); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE(
    "tokens that the model does not have are found before the training, or where they are read") {
  auto options = options_of(8);
  options.vocabulary = 1025;
  (void)Dataset(two_sources(), options);
  options.vocabulary = 1024;
  for (bool const reads_all : {true, false}) {  // the file says that it may have token 1024
    options.reads_all = reads_all;
    auto const error = error_of([&] { Dataset(two_sources(), options); });
    CHECK(error.code() == Errc::bad_file);
    CHECK(error.message() ==
          "'second': token 24 is 1024, and the model's vocabulary has 1024 tokens");
  }
  // A file that lies about its vocabulary.
  Tokens const tokens{1, 2, 3, 50, 4};
  auto const lying = [&] {
    return std::vector<DataSource>{{TokenDocuments(
        {.name = "lies", .vocabulary = 50, .tokens = std::as_bytes(std::span(tokens))})}};
  };
  options = options_of(2);
  options.shuffles = false;
  CHECK(contains(error_of([&] { Dataset(lying(), options); }).message(), "'lies': token 3 is 50"));
  options.reads_all = false;
  Dataset const data(lying(), options);
  CHECK(read_rows(data, 0, 1).first == Tokens{1, 2});
  CHECK(contains(error_of([&] { (void)read_rows(data, 1, 1); }).message(), "token 3 is 50"));
}

}  // namespace dataset_test
