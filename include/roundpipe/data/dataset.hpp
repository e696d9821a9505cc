// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Tokenized documents of several files as the batches of a training.

#include <roundpipe/config.hpp>
#include <roundpipe/data/held_out_rows.hpp>
#include <roundpipe/data/row_order.hpp>
#include <roundpipe/data/token_batch.hpp>
#include <roundpipe/data/token_rows.hpp>
#include <roundpipe/io/token_documents.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace roundpipe {

/// Documents, and how often an epoch reads them (see \ref RowSource). Copies share the documents.
struct DataSource {
  TokenDocuments documents;
  double weight = 1;
  std::shared_ptr<void const> owner{};  ///< Of the memory that `documents` views; may be none.
};

/// The documents of \p file, a TokenFile or TokenArrays, which the source owns.
template <class File>
[[nodiscard]] DataSource data_source(File file, double weight = 1) {
  auto owner = std::make_shared<File const>(std::move(file));
  return {owner->view(), weight, owner};
}

struct DatasetOptions {
  std::uint64_t context = 0;  ///< Positions of a row, at least 1.
  RowPacking packing = RowPacking::packed;
  /// With documents in rows of their own: 0 pads every row to the context. Another number pads the
  /// rows of a micro-batch to the longest of them, rounded up to a multiple of this number.
  std::uint64_t pad_to_multiple = 0;
  std::int32_t padding_token = 0;    ///< Of positions without a token.
  std::uint64_t held_out_every = 0;  ///< One of so many rows of each file is held out; 0: none.
  bool shuffles = true;              ///< Whether the rows of an epoch come in a random order.
  std::uint64_t seed = 0;            ///< Of the order, and of what is held out.
  std::uint64_t vocabulary = 0;      ///< Of the model; 0: not checked.
  /// Whether the constructor reads all tokens, and so finds bad ones before the training begins.
  /// Otherwise they show when their row is read. With a vocabulary smaller than a file's it always
  /// reads that file.
  bool reads_all = true;
};

/// How many rows a batch has, and how it is cut.
struct BatchRows {
  std::uint64_t rows = 1;
  std::uint64_t micro_batch_rows = 1;  ///< The last micro-batch of a batch has what is left.
};

/// Where a training stands in its data. Trivially copyable, for snapshots.
struct DataPosition {
  std::uint64_t rows = 0;         ///< Rows that were trained on, over all epochs.
  std::uint64_t seed = 0;         ///< Of the dataset.
  std::uint64_t fingerprint = 0;  ///< A hash of the files' extents and of the other options.
  friend bool operator==(DataPosition const&, DataPosition const&) noexcept = default;
};
static_assert(std::is_trivially_copyable_v<DataPosition>);

/// \brief The rows of all files: those to train on, without an end, and those held out.
///
/// Each row of the training follows from the seed and its number alone, so a training goes on from
/// any position, with batches of any size, and several threads may read at once. Rows that are held
/// out are never trained on, not even as what the last token of a row predicts.
class Dataset {
 public:
  /// \throws Error (invalid_argument) for options out of their domain; when files are too short to
  ///         hold out a row, or to train on one; (bad_file) for a token that is not below the
  ///         vocabulary, with file and token named.
  Dataset(std::vector<DataSource> sources, DatasetOptions const& options);

  [[nodiscard]] DatasetOptions const& options() const noexcept { return options_; }
  [[nodiscard]] std::size_t sources() const noexcept { return rows_.size(); }
  /// All rows of source \p source, held out or not.
  [[nodiscard]] TokenRows const& rows(std::size_t source) const { return rows_.at(source); }
  [[nodiscard]] HeldOutRows const& held_out(std::size_t source) const {
    return held_out_.at(source);
  }

  /// How many rows an epoch trains on.
  [[nodiscard]] std::uint64_t rows_per_epoch() const noexcept { return order_.rows_per_epoch(); }
  /// How many rows are held out, of all files.
  [[nodiscard]] std::uint64_t held_out_rows() const noexcept { return held_out_first_.back(); }

  /// Row number \p position of the training. \c row counts all rows of the source.
  [[nodiscard]] RowPlace training_row(std::uint64_t position) const noexcept;
  /// Held-out row number \p index: file by file, in the order of rows. Precondition: there is one.
  [[nodiscard]] RowPlace held_out_row(std::uint64_t index) const noexcept;

  /// Fills \p batch with the rows of the training from number \p position on.
  /// \throws Error (invalid_argument) for a cut with 0 rows, and as \ref TokenRows::copy.
  void read(std::uint64_t position, BatchRows const& cut, TokenBatch& batch) const;
  /// Fills \p batch with held-out rows from number \p index on: as many as \p cut says, or as there
  /// are left. \returns how many these are; with 0, \p batch is as it was.
  /// \throws Error as \ref read.
  std::uint64_t read_held_out(std::uint64_t index, BatchRows const& cut, TokenBatch& batch) const;

  /// The position of a training behind \p rows rows.
  [[nodiscard]] DataPosition position(std::uint64_t rows = 0) const noexcept {
    return {rows, options_.seed, fingerprint_};
  }
  /// \throws Error (invalid_argument) when \p position is of another dataset: of files of other
  ///         extents, or with other options. How batches are cut and padded, and `reads_all`, may
  ///         differ.
  void require_own(DataPosition const& position) const;

 private:
  void fill(std::vector<RowPlace> const& places, BatchRows const& cut, TokenBatch& batch) const;
  [[nodiscard]] std::uint64_t fingerprint(std::vector<DataSource> const& sources) const noexcept;

  DatasetOptions options_;
  std::vector<std::shared_ptr<void const>> owners_;
  std::vector<TokenRows> rows_;
  std::vector<HeldOutRows> held_out_;
  std::vector<std::uint64_t> held_out_first_;  // of each source; and the end
  RowOrder order_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/data/impl/dataset.ipp>
#endif
