// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Where gradients that the host sums land in its memory.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

/// \brief Rings of one entry, one for each gradient that may wait to be added to its sum.
///
/// Gradients are added in the order in which they land, so stages take turns: two of them share
/// rings when as many stages as there are devices lie between them, for until then other devices'
/// gradients are on their way. A stage's n-th gradient has the n-th ring. Uses of a tensor that
/// layers share have rings of their own: they are added in layer order, and wait for each other.
/// A round with fewer backward stages than there are devices leaves devices to the next rounds, so
/// rounds take turns, too.
class LandingRings {
 public:
  LandingRings() = default;
  /// A ring for each use of \p blocks whose gradient is summed.
  explicit LandingRings(ParameterBlocks const& blocks);
  /// \param blocks The model's.
  /// \param stages Those of a call, in execution order.
  /// \param devices How many stages run at once.
  /// \param rounds Those of a call.
  LandingRings(ParameterBlocks const& blocks,
               std::span<StageLayout const> stages,
               std::size_t devices,
               std::size_t rounds);

  /// The number of the ring where the gradient of \p use lands in \p round.
  /// \throws Error (invalid_argument) when that gradient is not summed.
  [[nodiscard]] std::size_t index(BlockUseId use, RoundId round) const;

  /// The bytes of each ring's entry.
  [[nodiscard]] std::vector<Bytes> const& entry_bytes() const noexcept { return bytes_; }
  /// The bytes of all rings.
  [[nodiscard]] Bytes bytes() const;

 private:
  static constexpr auto none = static_cast<std::size_t>(-1);

  /// A new ring for \p use.
  [[nodiscard]] std::size_t add(ParameterBlocks const& blocks, BlockUseId use);

  std::vector<std::vector<std::size_t>> rings_;  // by round, modulo its size, and use
  std::vector<Bytes> bytes_;                     // by ring
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/landing_rings.ipp>
#endif
