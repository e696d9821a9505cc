// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What cuts a slot's parameter and gradient copies into pieces and assigns them to windows.

#include <roundpipe/core/bytes.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

/// Consecutive bytes of one of a slot's tensors.
struct Piece {
  std::size_t tensor = 0;  ///< Index into the list given to the policy.
  Bytes offset = 0;        ///< From the tensor's beginning.
  Bytes bytes = 0;

  friend constexpr bool operator==(Piece const&, Piece const&) noexcept = default;
};

/// What one action copies in one window.
struct Chunk {
  std::vector<Piece> pieces;
  std::size_t window = 0;  ///< The window of the neighbouring slot.
  /// Whether the chunk waits for the start of its window and for the window's activation copy.
  bool gated = true;

  [[nodiscard]] Bytes bytes() const noexcept {
    Bytes sum = 0;
    for (auto const& piece : pieces) {
      sum += piece.bytes;
    }
    return sum;
  }
  friend bool operator==(Chunk const&, Chunk const&) = default;
};

/// More than any micro-batches of a round need, and few enough that their bytes can be counted.
inline constexpr std::size_t most_activations_in_flight = 1024;

/// \brief A pure function from a slot's tensors to chunks.
///
/// Semantics:
/// 1. `chunks(tensor_bytes, windows)` covers every byte of every tensor exactly once, in chunks
///    ordered by window. Windows have the numbers 0 to `windows` - 1.
/// 2. `activations_in_flight()` (1 to \ref most_activations_in_flight) is the number of
/// micro-batches whose activations a
///    device holds in each direction: with 1, each activation is uploaded when it is needed; with
///    2, one micro-batch earlier.
///
/// Satisfied by: `PriorityTransferEngine`.
template <class P>
concept TransferPolicy = std::copy_constructible<P> &&
                         requires(P const& policy, std::span<Bytes const> tensors, std::size_t n) {
                           { policy.chunks(tensors, n) } -> std::same_as<std::vector<Chunk>>;
                           { policy.activations_in_flight() } -> std::convertible_to<std::size_t>;
                         };

}  // namespace roundpipe
