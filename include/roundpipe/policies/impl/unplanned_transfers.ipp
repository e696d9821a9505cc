// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/policies/unplanned_transfers.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::vector<Chunk> UnplannedTransfers::chunks(std::span<Bytes const> tensors,
                                                               std::size_t /*windows*/) const {
  Chunk chunk;
  chunk.gated = false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i] > 0) {
      chunk.pieces.push_back({i, 0, tensors[i]});
    }
  }
  std::vector<Chunk> chunks;
  if (!chunk.pieces.empty()) {
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

}  // namespace roundpipe
