// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>
#include <roundpipe/runtime/weight_access.hpp>

#include <algorithm>
#include <cstddef>

namespace roundpipe {

ROUNDPIPE_INLINE void WeightAccess::require_whole() const {
  require(!progress_.is_torn(),
          Errc::aborted,
          "an error has stopped an optimizer step half way, so that the weights are of no step; "
          "with StepStart::all_blocks only an optimizer that throws does that");
}

ROUNDPIPE_INLINE void WeightAccess::require_resumable() const {
  require_whole();
  require(!progress_.has_begun(),
          Errc::aborted,
          "an error has stopped the P copies of a step half way, so that the training cannot go "
          "on; with StepStart::all_blocks this cannot happen");
}

ROUNDPIPE_INLINE ParameterPlace WeightAccess::find(LayerId layer,
                                                   std::size_t index,
                                                   std::size_t size) const {
  auto const& blocks = memory_.blocks();
  require(layer.valid() && layer.index() < blocks.places.size() &&
              index < blocks.places[layer.index()].size(),
          Errc::invalid_argument,
          "there is no such parameter");
  auto const place = blocks.places[layer.index()][index];
  require(blocks.block_of(place.use).master[place.tensor].shape.size() == size,
          Errc::invalid_argument,
          "the values of a parameter are as many as its elements");
  return place;
}

ROUNDPIPE_INLINE void WeightAccess::read(ParameterPlace place, HostSpan<float> values) const {
  with_weights(block_of(place), place.tensor, [&](HostSpan<float const> weights) {
    std::copy(weights.begin(), weights.end(), values.begin());
  });
}

ROUNDPIPE_INLINE void WeightAccess::write(ParameterPlace place,
                                          HostSpan<float const> values) const {
  memory_.write_weights(block_of(place), place.tensor, values);
}

ROUNDPIPE_INLINE BlockId WeightAccess::block_of(ParameterPlace place) const {
  return memory_.blocks().use(place.use).block;
}

}  // namespace roundpipe
