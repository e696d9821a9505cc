// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/digest.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/data/dataset.hpp>
#include <roundpipe/data/held_out_rows.hpp>
#include <roundpipe/data/random_streams.hpp>
#include <roundpipe/data/row_order.hpp>
#include <roundpipe/data/token_batch.hpp>
#include <roundpipe/data/token_rows.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/token_documents.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

[[nodiscard]] ROUNDPIPE_INLINE DatasetOptions checked_options(DatasetOptions const& options) {
  require(options.context >= 1 && options.context < token_limit,
          Errc::invalid_argument,
          "the context of a dataset is 1 to 2^31 - 1");
  require(options.held_out_every != 1,
          Errc::invalid_argument,
          "a dataset that holds out one of every 1 rows has none to train on");
  require(options.padding_token >= 0 &&
              (options.vocabulary == 0 ||
               static_cast<std::uint64_t>(options.padding_token) < options.vocabulary),
          Errc::invalid_argument,
          "the padding token of a dataset is not in the vocabulary");
  require(options.pad_to_multiple == 0 || options.packing == RowPacking::document_per_row,
          Errc::invalid_argument,
          "packed rows all have the context's length: pad_to_multiple is for documents in rows of "
          "their own");
  return options;
}

[[nodiscard]] ROUNDPIPE_INLINE std::vector<TokenRows> cut_into_rows(
    std::vector<DataSource> const& sources, DatasetOptions const& options) {
  std::vector<TokenRows> rows;
  for (auto const& source : sources) {
    auto const& documents = source.documents;
    auto const model = options.vocabulary == 0 ? token_limit : options.vocabulary;
    if (options.reads_all || documents.vocabulary() > model) {
      documents.require_below(model, "the model's");
    }
    rows.emplace_back(documents,
                      RowLayout{options.context, options.packing, options.padding_token});
  }
  return rows;
}

[[nodiscard]] ROUNDPIPE_INLINE std::vector<HeldOutRows> hold_out(std::vector<TokenRows> const& rows,
                                                                 DatasetOptions const& options) {
  std::vector<HeldOutRows> result;
  for (std::size_t s = 0; s < rows.size(); ++s) {
    result.emplace_back(
        rows[s].size(), options.held_out_every, data_key(options.seed, DataStream::held_out, 0, s));
  }
  return result;
}

[[nodiscard]] ROUNDPIPE_INLINE RowOrder order_rows(std::vector<DataSource> const& sources,
                                                   std::vector<HeldOutRows> const& held_out,
                                                   DatasetOptions const& options) {
  std::vector<RowSource> training;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    training.push_back({held_out[s].training(), sources[s].weight});
  }
  return {std::move(training), options.seed, options.shuffles};
}

}  // namespace detail

ROUNDPIPE_INLINE Dataset::Dataset(std::vector<DataSource> sources, DatasetOptions const& options)
    : options_(detail::checked_options(options)),
      rows_(detail::cut_into_rows(sources, options_)),
      held_out_(detail::hold_out(rows_, options_)),
      held_out_first_{0},
      order_(detail::order_rows(sources, held_out_, options_)),
      fingerprint_(fingerprint(sources)) {
  for (std::size_t s = 0; s < rows_.size(); ++s) {
    owners_.push_back(std::move(sources[s].owner));
    held_out_first_.push_back(held_out_first_.back() + held_out_[s].held_out());
  }
  require(options_.held_out_every == 0 || held_out_rows() > 0,
          Errc::invalid_argument,
          "every file of the dataset has a single row, so none can be held out");
}

ROUNDPIPE_INLINE RowPlace Dataset::training_row(std::uint64_t position) const noexcept {
  auto const place = order_(position);
  return {place.source, held_out_[place.source].training_row(place.row)};
}

ROUNDPIPE_INLINE RowPlace Dataset::held_out_row(std::uint64_t index) const noexcept {
  assert(index < held_out_rows());
  auto const next = std::upper_bound(held_out_first_.begin(), held_out_first_.end(), index);
  auto const source = static_cast<std::size_t>(next - held_out_first_.begin()) - 1;
  return {source, held_out_[source].held_out_row(index - held_out_first_[source])};
}

ROUNDPIPE_INLINE void Dataset::read(std::uint64_t position,
                                    BatchRows const& cut,
                                    TokenBatch& batch) const {
  std::vector<RowPlace> places;
  for (std::uint64_t i = 0; i < cut.rows; ++i) {
    places.push_back(training_row(position + i));
  }
  fill(places, cut, batch);
}

ROUNDPIPE_INLINE std::uint64_t Dataset::read_held_out(std::uint64_t index,
                                                      BatchRows const& cut,
                                                      TokenBatch& batch) const {
  auto const end = held_out_rows();
  std::vector<RowPlace> places;
  for (auto i = index; i < end && places.size() < cut.rows; ++i) {
    places.push_back(held_out_row(i));
  }
  if (!places.empty()) {
    fill(places, cut, batch);
  }
  return places.size();
}

ROUNDPIPE_INLINE void Dataset::require_own(DataPosition const& position) const {
  require(position.seed == options_.seed,
          Errc::invalid_argument,
          "the position in the data is of a training with another seed");
  require(position.fingerprint == fingerprint_,
          Errc::invalid_argument,
          "the position in the data is of other files, weights, context, packing, shuffling or "
          "held-out rows");
}

ROUNDPIPE_INLINE void Dataset::fill(std::vector<RowPlace> const& places,
                                    BatchRows const& cut,
                                    TokenBatch& batch) const {
  require(!places.empty() && cut.micro_batch_rows > 0,
          Errc::invalid_argument,
          "a batch and its micro-batches have at least one row");
  std::vector<BatchShape> shapes;
  for (std::size_t first = 0; first < places.size();) {
    auto const rows = std::min<std::uint64_t>(cut.micro_batch_rows, places.size() - first);
    auto length = options_.context;
    if (auto const multiple = options_.pad_to_multiple; multiple > 0) {
      std::uint64_t longest = 1;
      for (std::size_t i = first; i < first + rows; ++i) {
        longest = std::max(longest, rows_[places[i].source].tokens(places[i].row).size());
      }
      auto const padding = (multiple - longest % multiple) % multiple;
      length = longest + std::min(padding, length - longest);
    }
    shapes.push_back({static_cast<std::int64_t>(rows), static_cast<std::int64_t>(length)});
    first += static_cast<std::size_t>(rows);
  }
  batch.reset(shapes);
  std::size_t at = 0;
  auto place = places.begin();
  for (auto const& shape : shapes) {
    auto const length = static_cast<std::size_t>(shape.length);
    for (std::int64_t i = 0; i < shape.rows; ++i, ++place, at += length) {
      auto const& held_out = held_out_[place->source];
      auto const& rows = rows_[place->source];
      bool const same_side =
          place->row + 1 == rows.size() ||
          held_out.is_held_out(place->row) == held_out.is_held_out(place->row + 1);
      rows.copy(place->row,
                same_side ? RowEnd::predicts : RowEnd::ignored,
                batch.tokens().subspan(at, length),
                batch.labels().subspan(at, length));
    }
  }
}

ROUNDPIPE_INLINE std::uint64_t Dataset::fingerprint(
    std::vector<DataSource> const& sources) const noexcept {
  Digest digest;
  auto const add = [&](std::uint64_t number) { digest.add(std::as_bytes(std::span(&number, 1))); };
  add(options_.context);
  add(static_cast<std::uint64_t>(options_.packing));
  add(options_.held_out_every);
  add(options_.shuffles ? 1 : 0);
  for (auto const& source : sources) {
    add(source.documents.size());
    add(source.documents.documents());
    add(std::bit_cast<std::uint64_t>(source.weight));
  }
  return digest.value();
}

}  // namespace roundpipe
