// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The chunks in which a stage's parameters go up and its gradients come down.

#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/plan/action_graph.hpp>
#include <roundpipe/plan/parameter_blocks.hpp>
#include <roundpipe/plan/stage_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

/// A slot's chunks from its tensors' bytes and the number of windows (`TransferPolicy::chunks`).
using ChunkFunction = std::function<std::vector<Chunk>(std::span<Bytes const>, std::size_t)>;

/// A chunk whose pieces are given in terms of blocks.
struct StageChunk {
  std::size_t window = 0;
  bool gated = true;
  Bytes bytes = 0;
  std::vector<BlockPiece> pieces;
  std::vector<std::size_t> uses;  ///< Of the pieces, each once.
};

/// Cuts the tensors of those of \p stage's blocks that \p wanted takes, for \p windows windows.
/// \throws Error (invalid_argument) when \p chunks places one behind the last window.
[[nodiscard]] inline std::vector<StageChunk> cut_stage(
    ParameterBlocks const& blocks,
    StageLayout const& stage,
    std::size_t windows,
    ChunkFunction const& chunks,
    std::function<bool(UsePlace const&)> const& wanted) {
  std::vector<std::pair<std::size_t, std::size_t>> tensors;  // use, tensor of its block
  std::vector<Bytes> bytes;
  for (auto const& place : stage.uses) {
    auto const& table = blocks.block_of(place.use).master;
    for (std::size_t t = 0; wanted(place) && t < table.size(); ++t) {
      tensors.emplace_back(place.use, t);
      bytes.push_back(table[t].bytes());
    }
  }
  std::vector<StageChunk> result;
  for (auto const& chunk : chunks(bytes, windows)) {
    require(chunk.window < windows,
            Errc::invalid_argument,
            "a transfer policy placed a chunk behind its slot's last window");
    StageChunk cut{chunk.window, chunk.gated, 0, {}, {}};
    for (auto const& piece : chunk.pieces) {
      auto const [use, tensor] = tensors.at(piece.tensor);
      if (piece.bytes == 0) {
        continue;
      }
      cut.bytes += piece.bytes;
      cut.pieces.push_back({use, tensor, piece.offset, piece.bytes});
      if (std::find(cut.uses.begin(), cut.uses.end(), use) == cut.uses.end()) {
        cut.uses.push_back(use);
      }
    }
    if (!cut.pieces.empty()) {
      result.push_back(std::move(cut));
    }
  }
  return result;
}

/// How many of \p chunks hold a piece of \p use.
[[nodiscard]] inline std::size_t count_chunks(std::span<StageChunk const> chunks, std::size_t use) {
  return static_cast<std::size_t>(
      std::count_if(chunks.begin(), chunks.end(), [&](StageChunk const& chunk) {
        return std::find(chunk.uses.begin(), chunk.uses.end(), use) != chunk.uses.end();
      }));
}

}  // namespace roundpipe
