// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief Any dataset reads what a plain list of its rows would, and goes on from any position.

#include <roundpipe/data/dataset.hpp>

#include <roundpipe/data/batch_loader.hpp>
#include <roundpipe/data/permutation.hpp>
#include <support/made_documents.hpp>
#include <support/property.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace dataset_property {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A row as a batch has it, without padding at its end.
struct Row {
  Tokens tokens;
  Tokens labels;
  friend bool operator==(Row const&, Row const&) = default;
};

constexpr std::int32_t padding = 1'000'000;

/// The rows of \p documents, cut by hand: of a flat list of tokens and of what each predicts.
std::vector<Row> cut_by_hand(std::vector<MadeDocument> const& documents,
                             std::size_t context,
                             RowPacking packing) {
  std::vector<Row> rows;
  for (auto const& document : documents) {
    bool const starts_row = packing == RowPacking::document_per_row;
    for (std::size_t i = 0; i < document.tokens.size(); ++i) {
      if (rows.empty() || rows.back().tokens.size() == context || (starts_row && i == 0)) {
        if (starts_row && i > 0) {
          break;  // the rest of the document has no row
        }
        rows.emplace_back();
      }
      auto const& labels = document.labels.empty() ? document.tokens : document.labels;
      rows.back().tokens.push_back(document.tokens[i]);
      rows.back().labels.push_back(i + 1 < labels.size() ? labels[i + 1] : ignored_label);
    }
  }
  return rows;
}

/// The rows of \p batch.
std::vector<Row> rows_of(TokenBatch const& batch) {
  std::vector<Row> rows;
  std::size_t at = 0;
  for (auto const& shape : batch.shapes()) {
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      auto& row = rows.emplace_back();
      for (std::int64_t i = 0; i < shape.length; ++i, ++at) {
        if (batch.tokens()[at] == padding) {
          RC_ASSERT(batch.labels()[at] == ignored_label);
        } else {
          RC_ASSERT(row.tokens.size() == static_cast<std::size_t>(i));
          row.tokens.push_back(batch.tokens()[at]);
          row.labels.push_back(batch.labels()[at]);
        }
      }
    }
  }
  return rows;
}

struct Case {
  std::vector<std::vector<MadeDocument>> files;
  std::vector<double> weights;
  DatasetOptions options;

  [[nodiscard]] Dataset dataset() const {
    std::vector<DataSource> sources;
    for (std::size_t f = 0; f < files.size(); ++f) {
      sources.push_back(source_of(files[f], weights[f]));
    }
    return {std::move(sources), options};
  }
};

Case any_case() {
  Case result;
  auto& options = result.options;
  options.context = any_number("context", 1, 20);
  options.packing = any_flag("packed") ? RowPacking::packed : RowPacking::document_per_row;
  options.pad_to_multiple =
      options.packing == RowPacking::packed ? 0 : any_number("pad to multiple", 0, 9);
  options.padding_token = padding;
  options.held_out_every = any_number("held out every", 0, 6);
  options.held_out_every += options.held_out_every == 1 ? 1 : 0;
  options.shuffles = any_flag("shuffles");
  options.seed = any_number("seed", 0, 1000);
  auto const files = any_number("files", 1, 3);
  for (std::size_t f = 0; f < files; ++f) {
    std::vector<std::size_t> sizes(any_number("documents", 2, 12));
    for (auto& size : sizes) {
      size = any_number("tokens", 1, 30);
    }
    result.files.push_back(
        made_documents(sizes, static_cast<std::int32_t>(f * 1000), any_flag("masked")));
    result.weights.push_back(static_cast<double>(any_number("weight in quarters", 1, 9)) / 4);
  }
  if (options.packing == RowPacking::packed && options.held_out_every > 0) {
    options.context = std::min<std::uint64_t>(options.context, 2);  // two rows, at least
    for (auto& file : result.files) {
      file.push_back(made_documents({4}, file.back().tokens.back() + 1).front());
    }
  }
  return result;
}

std::vector<Row> read_rows(Dataset const& data, std::uint64_t first, BatchRows const& cut) {
  TokenBatch batch;
  data.read(first, cut, batch);
  return rows_of(batch);
}

}  // namespace

TEST_CASE("held-out rows and those of an epoch are the rows that a plain list has, once each") {
  check_property([] {
    auto const made = any_case();
    auto const data = made.dataset();
    auto const held_out = data.held_out_rows();
    for (std::uint64_t i = 0; i < held_out; ++i) {
      auto const place = data.held_out_row(i);
      RC_ASSERT(data.held_out(place.source).is_held_out(place.row));
    }
    // Over 4 epochs a file of weight w is read 4 w times, whole, up to rounding to rows.
    auto const rows = 4 * data.rows_per_epoch();
    std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> counts;
    for (std::uint64_t i = 0; i < rows; ++i) {
      auto const place = data.training_row(i);
      RC_ASSERT(!data.held_out(place.source).is_held_out(place.row));
      ++counts[{place.source, place.row}];
    }
    for (std::size_t f = 0; f < made.files.size(); ++f) {
      auto const all = cut_by_hand(made.files[f], made.options.context, made.options.packing);
      RC_ASSERT(data.rows(f).size() == all.size());
      std::size_t least = rows;
      std::size_t most = 0;
      for (std::uint64_t row = 0; row < all.size(); ++row) {
        if (!data.held_out(f).is_held_out(row)) {
          least = std::min(least, counts[{f, row}]);
          most = std::max(most, counts[{f, row}]);
        }
      }
      RC_ASSERT(most <= least + 1);
      if (made.weights[f] == 1.0) {
        RC_ASSERT(least == 4U);
        RC_ASSERT(most == 4U);
      }
    }
    // What is read is what the list has, but for labels across the border of held-out rows.
    auto const read = read_rows(data, 0, {.rows = rows, .micro_batch_rows = 3});
    RC_ASSERT(read.size() == rows);
    for (std::uint64_t i = 0; i < rows; ++i) {
      auto const place = data.training_row(i);
      auto const all =
          cut_by_hand(made.files[place.source], made.options.context, made.options.packing);
      auto wanted = all.at(static_cast<std::size_t>(place.row));
      if (place.row + 1 < all.size() && data.held_out(place.source).is_held_out(place.row + 1)) {
        wanted.labels.back() = ignored_label;
      }
      RC_ASSERT(read[static_cast<std::size_t>(i)] == wanted);
    }
  });
}

TEST_CASE(
    "a training that stops anywhere goes on with the same rows, however its batches are cut") {
  check_property([] {
    auto const made = any_case();
    auto const data = made.dataset();
    auto const rows = any_number("rows", 1, 60);
    auto const whole = read_rows(data, 0, {.rows = rows, .micro_batch_rows = 4});
    auto const again = made.dataset();  // as after a restart
    auto position = data.position();
    std::vector<Row> parts;
    while (position.rows < rows) {
      BatchRows const cut{.rows = std::min(any_number("batch", 1, 17), rows - position.rows),
                          .micro_batch_rows = any_number("micro-batch", 1, 5)};
      auto const batches = any_number("batches", 1, 3);
      BatchLoader loader(
          again,
          cut,
          position,
          {.depth = any_number("depth", 1, 3), .threads = any_number("threads", 1, 3)});
      for (std::size_t b = 0; b < batches && loader.position().rows + cut.rows <= rows; ++b) {
        auto const read = rows_of(loader.next());
        parts.insert(parts.end(), read.begin(), read.end());
      }
      position = loader.position();
    }
    RC_ASSERT(parts == whole);
  });
}

TEST_CASE("a permutation of any size and key is one") {
  check_property([] {
    auto const size = any_number("size", 1, 5000);
    RandomPermutation const permutation(
        size,
        {.seed = any_number("seed", 0, 1'000'000),
         .step = static_cast<std::uint32_t>(any_number("step", 0, 99))});
    std::vector<bool> seen(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      auto const value = permutation(i);
      RC_ASSERT(value < size);
      RC_ASSERT(!seen[static_cast<std::size_t>(value)]);
      seen[static_cast<std::size_t>(value)] = true;
    }
  });
}

}  // namespace dataset_property
