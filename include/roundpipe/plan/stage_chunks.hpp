// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The chunks in which a stage's parameters go up and its gradients come down.

#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

/// A slot's chunks from its tensors' bytes and the number of windows (`TransferPolicy::chunks`).
using ChunkFunction = std::function<std::vector<Chunk>(std::span<Bytes const>, std::size_t)>;

/// `activations_in_flight()` of \p policy.
/// \throws Error (invalid_argument) for a number that rule 2 of \ref TransferPolicy excludes.
template <TransferPolicy T>
[[nodiscard]] std::size_t activations_in_flight(T const& policy) {
  std::size_t const count = policy.activations_in_flight();
  if (count < 1 || count > most_activations_in_flight) {
    throw broken_rule("TransferPolicy::activations_in_flight",
                      2,
                      "it is " + std::to_string(count) + ", not 1 to " +
                          std::to_string(most_activations_in_flight));
  }
  return count;
}

/// A chunk whose pieces are given in terms of blocks.
struct StageChunk {
  std::size_t window = 0;
  bool gated = true;
  Bytes bytes = 0;
  std::vector<BlockPiece> pieces;
  std::vector<BlockUseId> uses;  ///< Of the pieces, each once.
};

/// Cuts the tensors of those of \p stage's blocks that \p wanted takes, for \p windows windows.
/// \throws Error (invalid_argument) where \p chunks breaks rule 1 of \ref TransferPolicy.
[[nodiscard]] std::vector<StageChunk> cut_stage(ParameterBlocks const& blocks,
                                                StageLayout const& stage,
                                                std::size_t windows,
                                                ChunkFunction const& chunks,
                                                std::function<bool(UsePlace const&)> const& wanted);

/// \p chunks of whole blocks that go up for \p stage with the same windows, and the same bytes in
/// each but for less than 256, in the order in which layers need them: for a slot that begins while
/// its parameters go up. Chunks that are not all gated stay as they are.
[[nodiscard]] std::vector<StageChunk> in_layer_order(std::vector<StageChunk> chunks,
                                                     ParameterBlocks const& blocks,
                                                     StageLayout const& stage);

/// One chunk for each use that \p wanted takes, in the order in which a backward is done with them,
/// and none gated: for copies that others wait for.
[[nodiscard]] std::vector<StageChunk> chunks_by_use(
    ParameterBlocks const& blocks,
    StageLayout const& stage,
    std::function<bool(UsePlace const&)> const& wanted);

/// How many of \p chunks hold a piece of \p use.
[[nodiscard]] std::size_t count_chunks(std::span<StageChunk const> chunks, BlockUseId use);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/stage_chunks.ipp>
#endif
