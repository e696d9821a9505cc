// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What layers cost, by the size of micro-batches.

#include <roundpipe/config.hpp>
#include <roundpipe/model/cost_model.hpp>

#include <cstdint>
#include <map>
#include <optional>

namespace roundpipe {

/// The costs of one model for micro-batches of some numbers of rows, of one length.
class CostsByRows {
 public:
  /// Keeps \p costs for \p rows rows, unless there are some. The network is that of all sizes.
  /// \throws Error (invalid_argument) unless they are of as many layers as the others.
  void add(std::int64_t rows, CostModel costs);

  [[nodiscard]] bool empty() const noexcept { return costs_.empty(); }
  [[nodiscard]] bool has(std::int64_t rows) const { return costs_.contains(rows); }

  /// The costs for \p rows rows; between two sizes, those on the line through both, for a layer
  /// does the same for each row, besides what it does once: on an H100, two and three rows of 8,192
  /// tokens take a block of 8B 0.4 % more and 0.6 % less than the line from one to four. None
  /// beyond the smallest and the largest size.
  [[nodiscard]] std::optional<CostModel> find(std::int64_t rows) const;

 private:
  std::map<std::int64_t, CostModel> costs_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/costs_by_rows.ipp>
#endif
