// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/memory/boundary_place.hpp>
#include <roundpipe/memory/freed_space.hpp>
#include <roundpipe/model/model_description.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace roundpipe::detail {

ROUNDPIPE_INLINE std::size_t tensors_apart(ModelDescription const& model, std::size_t layer) {
  return std::max(model.layers[layer].carries.tensors, model.layers[layer + 1].carries.tensors);
}

ROUNDPIPE_INLINE std::size_t gradients_apart(ModelDescription const& model,
                                             LayerRange range,
                                             std::size_t layer) {
  auto const handed_back = layer > range.first ? model.layers[layer].carries.gradients : 0;
  return std::max(handed_back, model.layers[layer + 1].carries.gradients);
}

ROUNDPIPE_INLINE std::vector<Place> carried_places(CarriedFrom from,
                                                   TensorTable const& boundary,
                                                   std::size_t apart,
                                                   BoundaryData data,
                                                   std::function<Place(Bytes)> const& take) {
  auto const& there = from.place.apart;
  std::vector<Place> places(apart);
  for (std::size_t j = 1; j <= apart; ++j) {  // from the last tensor on
    auto const& spec = boundary[boundary.size() - j];
    auto const exists = data == BoundaryData::tensors || is_floating(spec.dtype);
    if (j <= from.count && j <= there.size()) {
      places[apart - j] = there[there.size() - j];
    } else if (exists && spec.bytes() > 0) {
      places[apart - j] = take(spec.bytes());
    }
  }
  return places;
}

ROUNDPIPE_INLINE void CarriedSpace::place(CarriedFrom from,
                                          BoundaryPlace& to,
                                          TensorTable const& boundary,
                                          std::size_t apart,
                                          BoundaryData data,
                                          Bytes base) {
  if (!space_) {
    space_.emplace(base);
  }
  to.apart = carried_places(from, boundary, apart, data, [&](Bytes bytes) {
    return Place{Area::scratch, space_->take(align_up(bytes)), bytes};
  });
  leave(from.place, to);
}

ROUNDPIPE_INLINE void CarriedSpace::leave(BoundaryPlace const& from, BoundaryPlace const& to) {
  for (auto const& place : from.apart) {
    if (!to.holds_apart(place)) {
      space_->free(place.offset, align_up(place.bytes));
    }
  }
}

}  // namespace roundpipe::detail
