// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Strong ids: a layer number cannot pass for a device number.

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace roundpipe {

/// A zero-based number. \p Tag distinguishes the kinds. The default is \ref none().
template <class Tag>
class Id {
 public:
  constexpr Id() noexcept = default;
  template <std::integral I>
  constexpr explicit Id(I value) noexcept : value_(static_cast<std::int32_t>(value)) {}

  /// The id that names nothing.
  [[nodiscard]] static constexpr Id none() noexcept { return Id{}; }

  [[nodiscard]] constexpr bool valid() const noexcept { return value_ >= 0; }
  /// The number. Precondition: \ref valid().
  [[nodiscard]] constexpr std::size_t index() const noexcept {
    return static_cast<std::size_t>(value_);
  }
  [[nodiscard]] constexpr std::int32_t value() const noexcept { return value_; }

  friend constexpr auto operator<=>(Id const&, Id const&) noexcept = default;
  friend constexpr bool operator==(Id const&, Id const&) noexcept = default;

 private:
  std::int32_t value_ = -1;
};

using LayerId = Id<struct LayerTag>;  ///< A layer of the model, in execution order.
using BlockId = Id<struct BlockTag>;  ///< A parameter block; tied layers share one.
using BlockUseId =
    Id<struct BlockUseTag>;           ///< One layer's use of a parameter block, in layer order.
using StageId = Id<struct StageTag>;  ///< A stage in execution order; forward stages come first.
using SlotId = Id<struct SlotTag>;    ///< A stage in a round: a place in the dispatch order.
using RoundId = Id<struct RoundTag>;  ///< A round of a call.
using MicroBatchId = Id<struct MicroBatchTag>;  ///< A micro-batch of a round.
using DeviceId = Id<struct DeviceTag>;  ///< A worker; relative in graphs, physical in backends.
using ActionId = Id<struct ActionTag>;  ///< An action of a graph, in issue order.

}  // namespace roundpipe

template <class Tag>
struct std::hash<roundpipe::Id<Tag>> {
  std::size_t operator()(roundpipe::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value());
  }
};
