// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/data/permutation.hpp>
#include <roundpipe/data/random_streams.hpp>
#include <roundpipe/data/row_order.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE RowOrder::RowOrder(std::vector<RowSource> sources,
                                    std::uint64_t seed,
                                    bool shuffles)
    : sources_(std::move(sources)), first_{0}, seed_(seed), shuffles_(shuffles) {
  require(!sources_.empty(), Errc::invalid_argument, "an order of rows needs a source");
  double sum = 0;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    auto const& source = sources_[s];
    auto const fail = [&](std::string const& fault) {
      throw Error(Errc::invalid_argument, "source " + std::to_string(s) + " of rows " + fault);
    };
    if (source.rows == 0) {
      fail("has no row");
    }
    if (!(std::isfinite(source.weight) && source.weight > 0)) {
      fail("has the weight " + std::to_string(source.weight) + ": want a positive number");
    }
    auto const rows = std::round(source.weight * static_cast<double>(source.rows));
    sum += rows;
    if (!(sum < 0x1p53)) {
      fail("makes an epoch longer than 2^53 rows");
    }
    first_.push_back(first_.back() + std::max<std::uint64_t>(1, static_cast<std::uint64_t>(rows)));
  }
}

ROUNDPIPE_INLINE RowPlace RowOrder::operator()(std::uint64_t position) const noexcept {
  auto const epoch = position / rows_per_epoch();
  auto place = position % rows_per_epoch();
  if (shuffles_) {
    place = RandomPermutation(
        rows_per_epoch(),
        detail::data_key(seed_, detail::DataStream::order_of_epoch, epoch, 0))(place);
  }
  auto const next = std::upper_bound(first_.begin(), first_.end(), place);
  auto const source = static_cast<std::size_t>(next - first_.begin()) - 1;
  // Which of the source's rows this is, counted over all epochs.
  auto const index = epoch * rows_per_epoch(source) + (place - first_[source]);
  auto const rows = sources_[source].rows;
  auto row = index % rows;
  if (shuffles_) {
    row = RandomPermutation(
        rows,
        detail::data_key(seed_, detail::DataStream::rows_of_source, index / rows, source))(row);
  }
  return {source, row};
}

}  // namespace roundpipe
