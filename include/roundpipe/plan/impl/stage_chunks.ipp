// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/plan/stage_chunks.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// \throws Error (invalid_argument) where \p chunks, the answer for tensors of \p bytes and \p
///         windows windows, break rule 1 of \ref TransferPolicy.
ROUNDPIPE_INLINE void check_chunks(std::span<Chunk const> chunks,
                                   std::span<Bytes const> bytes,
                                   std::size_t windows) {
  auto const refuse = [](std::string const& value) {
    throw broken_rule("TransferPolicy::chunks", 1, value);
  };
  auto const text = [](Piece const& piece) {
    return std::to_string(piece.bytes) + " bytes of tensor " + std::to_string(piece.tensor) +
           " from byte " + std::to_string(piece.offset) + " on";
  };
  std::vector<Piece> pieces;
  std::size_t window = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    auto const& chunk = chunks[i];
    auto const name = [&] {
      return "chunk " + std::to_string(i) + " in window " + std::to_string(chunk.window);
    };
    if (chunk.window >= windows) {
      refuse(name() + " of " + std::to_string(windows));
    }
    if (chunk.window < window) {
      refuse(name() + " comes after one in window " + std::to_string(window));
    }
    window = chunk.window;
    for (auto const& piece : chunk.pieces) {
      if (piece.tensor >= bytes.size()) {
        refuse(name() + " has " + text(piece) + ", but the slot has " +
               std::to_string(bytes.size()) + " tensors");
      }
      if (piece.bytes > 0) {
        pieces.push_back(piece);
      }
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](Piece const& a, Piece const& b) {
    return a.tensor != b.tensor ? a.tensor < b.tensor : a.offset < b.offset;
  });
  auto piece = pieces.begin();
  for (std::size_t tensor = 0; tensor < bytes.size(); ++tensor) {
    Bytes covered = 0;
    for (; piece != pieces.end() && piece->tensor == tensor; ++piece) {
      if (piece->offset != covered || piece->bytes > bytes[tensor] - covered) {
        refuse(text(*piece) + ", but its first " + std::to_string(covered) + " of " +
               std::to_string(bytes[tensor]) + " bytes are covered so far");
      }
      covered += piece->bytes;
    }
    if (covered < bytes[tensor]) {
      refuse("the last " + std::to_string(bytes[tensor] - covered) + " of " +
             std::to_string(bytes[tensor]) + " bytes of tensor " + std::to_string(tensor) +
             " are in no chunk");
    }
  }
}

}  // namespace detail

ROUNDPIPE_INLINE std::vector<StageChunk> cut_stage(
    ParameterBlocks const& blocks,
    StageLayout const& stage,
    std::size_t windows,
    ChunkFunction const& chunks,
    std::function<bool(UsePlace const&)> const& wanted) {
  std::vector<std::pair<BlockUseId, std::size_t>> tensors;  // use, tensor of its block
  std::vector<Bytes> bytes;
  for (auto const& place : stage.uses) {
    auto const& table = blocks.block_of(place.use).master;
    for (std::size_t t = 0; wanted(place) && t < table.size(); ++t) {
      tensors.emplace_back(place.use, t);
      bytes.push_back(table[t].bytes());
    }
  }
  auto const answer = chunks(bytes, windows);
  detail::check_chunks(answer, bytes, windows);
  std::vector<StageChunk> result;
  for (auto const& chunk : answer) {
    StageChunk cut{chunk.window, chunk.gated, 0, {}, {}};
    for (auto const& piece : chunk.pieces) {
      if (piece.bytes == 0) {
        continue;
      }
      auto const [use, tensor] = tensors[piece.tensor];
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

ROUNDPIPE_INLINE std::vector<StageChunk> in_layer_order(std::vector<StageChunk> chunks,
                                                        ParameterBlocks const& blocks,
                                                        StageLayout const& stage) {
  if (!std::all_of(chunks.begin(), chunks.end(), [](auto const& chunk) { return chunk.gated; })) {
    return chunks;
  }
  std::vector<StageChunk> ordered;
  for (auto const& chunk : chunks) {
    ordered.push_back({chunk.window, true, 0, {}, {}});
  }
  std::size_t c = 0;
  auto room = chunks.empty() ? 0 : chunks.front().bytes;
  for (auto const& place : stage.uses) {
    auto const& table = blocks.block_of(place.use).master;
    auto const goes_up = count_chunks(chunks, place.use) > 0;
    for (std::size_t t = 0; goes_up && t < table.size(); ++t) {
      for (Bytes at = 0; at < table[t].bytes();) {
        auto const rest = table[t].bytes() - at;
        bool const is_last = c + 1 == chunks.size();
        auto const whole = room / tensor_alignment_bytes * tensor_alignment_bytes;
        auto const bytes = is_last ? rest : std::min(rest, whole);
        if (bytes == 0) {
          room += chunks[++c].bytes;
          continue;
        }
        auto& chunk = ordered[c];
        chunk.bytes += bytes;
        chunk.pieces.push_back({place.use, t, at, bytes});
        if (chunk.uses.empty() || chunk.uses.back() != place.use) {
          chunk.uses.push_back(place.use);
        }
        at += bytes;
        room -= std::min(room, bytes);
      }
    }
  }
  std::erase_if(ordered, [](StageChunk const& chunk) { return chunk.pieces.empty(); });
  return ordered;
}

ROUNDPIPE_INLINE std::vector<StageChunk> chunks_by_use(
    ParameterBlocks const& blocks,
    StageLayout const& stage,
    std::function<bool(UsePlace const&)> const& wanted) {
  std::vector<StageChunk> chunks;
  for (auto place = stage.uses.rbegin(); place != stage.uses.rend(); ++place) {
    auto const& table = blocks.block_of(place->use).master;
    StageChunk chunk{0, false, 0, {}, {place->use}};
    for (std::size_t t = 0; wanted(*place) && t < table.size(); ++t) {
      if (table[t].bytes() > 0) {
        chunk.bytes += table[t].bytes();
        chunk.pieces.push_back({place->use, t, 0, table[t].bytes()});
      }
    }
    if (!chunk.pieces.empty()) {
      chunks.push_back(std::move(chunk));
    }
  }
  return chunks;
}

ROUNDPIPE_INLINE std::size_t count_chunks(std::span<StageChunk const> chunks, BlockUseId use) {
  return static_cast<std::size_t>(
      std::count_if(chunks.begin(), chunks.end(), [&](StageChunk const& chunk) {
        return std::find(chunk.uses.begin(), chunk.uses.end(), use) != chunk.uses.end();
      }));
}

}  // namespace roundpipe
