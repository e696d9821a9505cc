// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts a slot's parameters and gradients into equal chunks, one for each window, that never
/// go ahead of an activation.

#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

/// \brief Packs tensors into windows, longest processing time first (Graham 1969; RoundPipe,
/// arXiv:2604.27085).
/// Reason: a copy in flight cannot be preempted, so an activation waits for the whole chunk before
/// it. The more even the chunks, the shorter the longest wait.
class PriorityTransferEngine {
 public:
  /// \param activations_in_flight The number of micro-batches whose activations a device holds in
  /// each direction. With 2, activations go up one micro-batch early and down one late.
  /// \throws Error (invalid_argument) for 0.
  constexpr explicit PriorityTransferEngine(std::size_t activations_in_flight = 2)
      : activations_in_flight_(activations_in_flight) {
    require(activations_in_flight > 0,
            Errc::invalid_argument,
            "at least one micro-batch's activations must be in flight");
  }

  [[nodiscard]] constexpr std::size_t activations_in_flight() const noexcept {
    return activations_in_flight_;
  }

  /// One gated chunk for each window that has bytes; its pieces are in tensor order.
  ///
  /// Tensors larger than the mean window are first split into parts of the mean size, rounded down
  /// to \ref tensor_alignment_bytes (but not below it); reason: no element lies in two pieces, and
  /// every piece keeps the alignment of its tensor. Then the largest remaining part goes to the
  /// least loaded window. No window exceeds the mean by more than one part.
  /// \throws Error (invalid_argument) for zero windows.
  [[nodiscard]] std::vector<Chunk> chunks(std::span<Bytes const> tensors,
                                          std::size_t windows) const;

 private:
  static std::vector<Piece> split(std::span<Bytes const> tensors, Bytes mean);

  /// Sorts pieces by position and joins neighbours.
  static void merge(std::vector<Piece>& pieces);

  std::size_t activations_in_flight_;
};

static_assert(TransferPolicy<PriorityTransferEngine>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/policies/impl/priority_transfer_engine.ipp>
#endif
