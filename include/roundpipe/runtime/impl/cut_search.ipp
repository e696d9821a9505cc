// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/runtime/cut_search.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

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

ROUNDPIPE_INLINE std::optional<Error> refusal_of(PipelineOptions const& options,
                                                 BatchCut const& cut) {
  auto const refused = [](char const* text) { return Error(Errc::invalid_argument, text); };
  if (options.offloaded_micro_batches.value_or(0) > cut.micro_batches_per_round) {
    return refused(
        "no cut of the batch has rounds of as many micro-batches as are to be offloaded");
  }
  auto const& levels = options.save_levels;
  if (levels && std::any_of(levels->begin(), levels->end(), [&](auto const& of_layer) {
        return !of_layer.empty() && of_layer.size() != cut.micro_batches_per_round;
      })) {
    return refused("no cut of the batch has rounds of as many micro-batches as have save levels");
  }
  if (auto const& of_rounds = options.levels_of_rounds;
      !of_rounds.empty() && of_rounds.rbegin()->first >= cut.rounds) {
    return refused("no cut of the batch has as many rounds as have save levels of their own");
  }
  return std::nullopt;
}

}  // namespace detail

}  // namespace roundpipe
