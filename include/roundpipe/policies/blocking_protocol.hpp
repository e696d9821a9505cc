// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Orders the optimizer with barriers over the whole model: the baseline for
/// LayerEventProtocol.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// \brief The rules of \ref LayerEventProtocol with every block in place of the same block: no P
/// copy before all uploads that must see older weights, no upload before all P copies, no update
/// before all gradients, no gradient before all updates.
///
/// The weights have the same bits. A trainer that joins its optimizer thread once in each iteration
/// behaves like this. With staleness 0 nothing of the optimizer is hidden; with staleness 1 the
/// optimizer runs beside the next iteration, up to its first gradient.
class BlockingProtocol {
 public:
  /// \throws Error (invalid_argument) for invalid options.
  constexpr explicit BlockingProtocol(EventProtocolOptions options = {}) : rules_(options) {}
  constexpr explicit BlockingProtocol(int staleness) : rules_(staleness) {}

  [[nodiscard]] constexpr int staleness() const noexcept { return rules_.staleness(); }
  [[nodiscard]] constexpr std::size_t master_copies() const noexcept {
    return rules_.master_copies();
  }
  [[nodiscard]] constexpr std::size_t gradient_buffers() const noexcept {
    return rules_.gradient_buffers();
  }

  /// What \p action waits for. \throws Error (invalid_argument) for an unknown block.
  [[nodiscard]] std::vector<BlockEvent> before(BlockEvent action, std::size_t blocks) const;

 private:
  LayerEventProtocol rules_;
};

static_assert(EventProtocol<BlockingProtocol>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/policies/impl/blocking_protocol.ipp>
#endif
