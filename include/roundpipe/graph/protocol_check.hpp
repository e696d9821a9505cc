// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Checks the answers of an event protocol.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/config.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

namespace detail {

/// \throws Error as \ref check of a protocol with these answers does.
void check_protocol(int staleness, std::size_t master_copies, std::size_t gradient_buffers);

/// \throws Error (invalid_argument) where \p events, the answer to \p action, break rule 1 of \ref
///         EventProtocol in a model with \p blocks blocks.
void check_events(std::span<BlockEvent const> events, BlockEvent action, std::size_t blocks);

}  // namespace detail

/// \throws Error (invalid_argument) where \p protocol breaks rule 2, 3 or 4 of \ref EventProtocol.
template <EventProtocol P>
void check(P const& protocol) {
  detail::check_protocol(
      protocol.staleness(), protocol.master_copies(), protocol.gradient_buffers());
}

/// `before(action, blocks)` of \p protocol.
/// \throws Error (invalid_argument) for events that break rule 1 of \ref EventProtocol.
template <EventProtocol P>
[[nodiscard]] std::vector<BlockEvent> events_before(P const& protocol,
                                                    BlockEvent action,
                                                    std::size_t blocks) {
  auto events = protocol.before(action, blocks);
  detail::check_events(events, action, blocks);
  return events;
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/graph/impl/protocol_check.ipp>
#endif
