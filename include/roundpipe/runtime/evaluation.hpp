// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What `evaluate` returns: the loss, and the results that the last layer declares.

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe {

/// The outcome of one evaluation, in memory of its own.
struct Evaluation {
  double loss = 0;
  std::uint64_t step = 0;           ///< The step whose weights it saw; 0: the first values.
  std::vector<TensorTable> tables;  ///< By micro-batch: its results, at its extents.
  std::vector<std::vector<std::byte>> results;  ///< By micro-batch: the table's block.

  /// The elements of result \p index of micro-batch \p micro_batch; they live as long as this.
  /// \throws Error (invalid_argument) when there is no such result, or one of another type.
  template <class T>
  [[nodiscard]] HostSpan<T const> result(std::size_t micro_batch, std::size_t index) const {
    require(micro_batch < tables.size() && index < tables[micro_batch].size(),
            Errc::invalid_argument,
            "an evaluation was asked for a result that it does not have");
    auto const& table = tables[micro_batch];
    require(dtype_of<T> == table[index].dtype,
            Errc::invalid_argument,
            "a result was read as another element type than it has");
    auto const* const first = results[micro_batch].data() + table.offset(index);
    return {reinterpret_cast<T const*>(first), table[index].shape.size()};
  }
};

}  // namespace roundpipe
