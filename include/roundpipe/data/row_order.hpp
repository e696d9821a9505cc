// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The order in which a training reads the rows of several files.

#include <roundpipe/config.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe {

/// The rows of one file, as \ref RowOrder needs them.
struct RowSource {
  std::uint64_t rows = 0;
  /// How often an epoch reads each row. With 2 it reads every row twice; with 0.25 a quarter of the
  /// rows, and the next epochs the other quarters.
  double weight = 1;
};

/// A row of one of several files.
struct RowPlace {
  std::size_t source = 0;
  std::uint64_t row = 0;
  friend constexpr bool operator==(RowPlace const&, RowPlace const&) noexcept = default;
};

/// \brief An endless order of rows, in which any position is found without those before it.
///
/// An *epoch* reads `weight` times its rows from each file (rounded to whole rows, at least one).
/// When all weights are 1, it reads every row once. Shuffled, the rows of all files in an epoch
/// come in an order drawn for the epoch; which rows a file with a fraction as its weight gives to
/// an epoch is drawn as well. Otherwise the files come one after another, each in its own order.
class RowOrder {
 public:
  /// \throws Error (invalid_argument) when there is no source, one has no row or a weight that is
  ///         not positive and finite, or an epoch would have 2^53 rows or more.
  RowOrder(std::vector<RowSource> sources, std::uint64_t seed, bool shuffles);

  [[nodiscard]] std::uint64_t rows_per_epoch() const noexcept { return first_.back(); }
  /// How many rows of source \p source an epoch reads.
  [[nodiscard]] std::uint64_t rows_per_epoch(std::size_t source) const noexcept {
    return first_[source + 1] - first_[source];
  }

  /// Row number \p position of the training, over all epochs.
  [[nodiscard]] RowPlace operator()(std::uint64_t position) const noexcept;

 private:
  std::vector<RowSource> sources_;
  std::vector<std::uint64_t> first_;  // of each source: its first place in an epoch; and the end
  std::uint64_t seed_;
  bool shuffles_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/data/impl/row_order.ipp>
#endif
