// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Where a boundary lies in a device's memory: in one block, but for carried tensors, which
/// stay where they are.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/memory/freed_space.hpp>
#include <roundpipe/model/model_description.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace roundpipe {

/// A part of a device's memory.
enum class Area : std::uint8_t { none, activations_in, activations_out, scratch };

/// Bytes in an area; the offset counts from the entry's beginning.
struct Place {
  Area area = Area::none;
  Bytes offset = 0;
  Bytes bytes = 0;

  friend constexpr bool operator==(Place const&, Place const&) noexcept = default;
};

/// A block for the tensors of a boundary, or for their gradients.
struct BoundaryPlace : Place {
  std::vector<Place> apart;  ///< Of the last tensors, which do not lie in the block.

  BoundaryPlace() = default;
  BoundaryPlace(Place block) : Place(block) {}  // implicit: all tensors lie in it

  [[nodiscard]] bool holds_apart(Place const& place) const noexcept {
    return std::find(apart.begin(), apart.end(), place) != apart.end();
  }
  /// How many of \p tensors lie in the block: the first ones.
  [[nodiscard]] std::size_t in_block(std::size_t tensors) const noexcept {
    return tensors - apart.size();
  }
};

namespace detail {

/// Whether places are for tensors or for their gradients, of which integers have none.
enum class BoundaryData : std::uint8_t { tensors, gradients };

/// Of the tensors of the boundary behind layer \p layer of a stage, which another of the stage
/// follows: how many, the last ones, a layer beside it carries.
[[nodiscard]] std::size_t tensors_apart(ModelDescription const& model, std::size_t layer);

/// The same of their gradients in a stage over \p range. What its first layer hands back leaves it.
[[nodiscard]] std::size_t gradients_apart(ModelDescription const& model,
                                          LayerRange range,
                                          std::size_t layer);

/// A boundary that a layer takes, and how many of its last tensors the layer carries.
struct CarriedFrom {
  BoundaryPlace const& place;
  std::size_t count = 0;
};

/// The places of the last \p apart tensors of \p boundary. The last ones are those that are carried
/// \p from another boundary: they stay where they lie apart there. The others get places from \p
/// take, which is asked for bytes.
[[nodiscard]] std::vector<Place> carried_places(CarriedFrom from,
                                                TensorTable const& boundary,
                                                std::size_t apart,
                                                BoundaryData data,
                                                std::function<Place(Bytes)> const& take);

/// \brief Memory in scratch for carried tensors, which is free again when no boundary names them
/// any longer.
class CarriedSpace {
 public:
  /// Gives the boundary at \p to the places of \ref carried_places. \p base is where the space
  /// begins, the same each time.
  void place(CarriedFrom from,
             BoundaryPlace& to,
             TensorTable const& boundary,
             std::size_t apart,
             BoundaryData data,
             Bytes base);

  /// Frees what lies apart in \p from and not in \p to.
  void leave(BoundaryPlace const& from, BoundaryPlace const& to);

  /// Where the space ends; 0 if nothing was placed.
  [[nodiscard]] Bytes end() const noexcept { return space_ ? space_->end() : 0; }

 private:
  std::optional<FreedSpace> space_;
};

}  // namespace detail

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/boundary_place.ipp>
#endif
