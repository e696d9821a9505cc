// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/runtime/cut_search.hpp>

#include <cstddef>
#include <cstdint>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE double least_seconds(CostModel const& costs,
                                      std::int64_t rows,
                                      BatchCut const& cut,
                                      std::size_t devices) {
  double micro_batch_s = 0;
  for (auto const& layer : costs.layers()) {
    micro_batch_s += layer.forward_s + layer.backward_s;
  }
  return micro_batch_s * static_cast<double>(rows / cut.rows) / static_cast<double>(devices);
}

}  // namespace detail

}  // namespace roundpipe
