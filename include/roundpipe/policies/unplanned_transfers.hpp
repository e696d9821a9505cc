// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Transfers without planning: the baseline of the benches.

#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/config.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

/// Copies all parameters of the next slot, and all gradients of the previous one, at once, as early
/// as the buffers allow. A later activation copy waits behind them. Activations go up one
/// micro-batch early as with \ref PriorityTransferEngine, so that only the planning differs.
class UnplannedTransfers {
 public:
  /// One chunk in window 0 that waits for nothing.
  [[nodiscard]] std::vector<Chunk> chunks(std::span<Bytes const> tensors,
                                          std::size_t /*windows*/) const;

  [[nodiscard]] std::size_t activations_in_flight() const noexcept { return 2; }
};

static_assert(TransferPolicy<UnplannedTransfers>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/policies/impl/unplanned_transfers.ipp>
#endif
