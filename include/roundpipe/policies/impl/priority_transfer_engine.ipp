// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::vector<Chunk> PriorityTransferEngine::chunks(std::span<Bytes const> tensors,
                                                                   std::size_t windows) const {
  require(windows > 0, Errc::invalid_argument, "a slot needs at least one window");
  Bytes total = 0;
  for (auto const bytes : tensors) {
    total += bytes;
  }
  auto parts = split(tensors, total / windows + (total % windows != 0 ? 1 : 0));
  std::stable_sort(
      parts.begin(), parts.end(), [](Piece const& a, Piece const& b) { return a.bytes > b.bytes; });

  using Load = std::pair<Bytes, std::size_t>;  // load and window; of equal loads the first window
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

ROUNDPIPE_INLINE std::vector<Piece> PriorityTransferEngine::split(std::span<Bytes const> tensors,
                                                                  Bytes mean) {
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

ROUNDPIPE_INLINE void PriorityTransferEngine::merge(std::vector<Piece>& pieces) {
  std::sort(pieces.begin(), pieces.end(), [](Piece const& a, Piece const& b) {
    return std::tie(a.tensor, a.offset) < std::tie(b.tensor, b.offset);
  });
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

}  // namespace roundpipe
