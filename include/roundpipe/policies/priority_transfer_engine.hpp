// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts a slot's parameters and gradients into equal chunks, one a window, that never stand
/// ahead of an activation.

#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace roundpipe {

/// \brief Packs tensors into windows, longest processing time first (Graham 1969; RoundPipe,
/// arXiv:2604.27085).
///
/// Reason: a copy in flight can not be preempted, so an activation waits for the whole chunk before
/// it; chunks as even as can be make the longest such wait the shortest.
class PriorityTransferEngine {
 public:
  /// \param activations_in_flight how many micro-batches' activations a device holds in each
  /// direction: with 2, they go up one micro-batch early and down one late.
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

  /// One gated chunk for each window that has any bytes, its pieces in tensor order.
  ///
  /// Tensors larger than the mean window are first split into parts of the mean, rounded down to
  /// \ref tensor_alignment_bytes (but not to less than that); reason: no element lies in two
  /// pieces, and every piece begins as aligned as its tensor. Then the largest part goes to the
  /// least loaded window, until none is left: no window exceeds the mean by more than one part.
  /// \throws Error (invalid_argument) for no windows.
  [[nodiscard]] std::vector<Chunk> chunks(std::span<Bytes const> tensors,
                                          std::size_t windows) const {
    require(windows > 0, Errc::invalid_argument, "a slot has at least one window");
    Bytes total = 0;
    for (auto const bytes : tensors) {
      total += bytes;
    }
    auto parts = split(tensors, total / windows + (total % windows != 0 ? 1 : 0));
    std::ranges::stable_sort(parts, std::ranges::greater{}, &Piece::bytes);

    using Load = std::pair<Bytes, std::size_t>;  // and its window: of equals, the first
    std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
    for (std::size_t window = 0; window < windows; ++window) {
      loads.emplace(0, window);
    }
    std::vector<Chunk> result(windows);
    for (auto const& part : parts) {
      auto const [bytes, window] = loads.top();
      loads.pop();
      loads.emplace(bytes + part.bytes, window);
      result[window].pieces.push_back(part);
    }
    for (std::size_t window = 0; window < windows; ++window) {
      result[window].window = window;
      merge(result[window].pieces);
    }
    std::erase_if(result, [](Chunk const& chunk) { return chunk.pieces.empty(); });
    return result;
  }

 private:
  static std::vector<Piece> split(std::span<Bytes const> tensors, Bytes mean) {
    auto const largest = std::max(mean / tensor_alignment_bytes, Bytes{1}) * tensor_alignment_bytes;
    std::vector<Piece> parts;
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      auto const part = tensors[tensor] > mean ? largest : mean;
      for (Bytes offset = 0; offset < tensors[tensor]; offset += part) {
        parts.push_back({tensor, offset, std::min(part, tensors[tensor] - offset)});
      }
    }
    return parts;
  }

  /// Sorts pieces by place and joins neighbours.
  static void merge(std::vector<Piece>& pieces) {
    std::ranges::sort(
        pieces, {}, [](Piece const& piece) { return std::tuple(piece.tensor, piece.offset); });
    std::vector<Piece> merged;
    for (auto const& piece : pieces) {
      if (!merged.empty() && merged.back().tensor == piece.tensor &&
          merged.back().offset + merged.back().bytes == piece.offset) {
        merged.back().bytes += piece.bytes;
      } else {
        merged.push_back(piece);
      }
    }
    pieces = std::move(merged);
  }

  std::size_t activations_in_flight_;
};

static_assert(TransferPolicy<PriorityTransferEngine>);

}  // namespace roundpipe
