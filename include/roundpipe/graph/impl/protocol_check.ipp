// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/protocol_check.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void check_protocol(int staleness,
                                     std::size_t master_copies,
                                     std::size_t gradient_buffers) {
  if (staleness != 0 && staleness != 1) {
    throw broken_rule(
        "EventProtocol::staleness", 2, "it is " + std::to_string(staleness) + ", not 0 or 1");
  }
  auto const check_count = [](char const* answer, int rule, std::size_t count) {
    if (count != 1 && count != 2) {
      throw broken_rule(answer, rule, "it is " + std::to_string(count) + ", not 1 or 2");
    }
  };
  check_count("EventProtocol::master_copies", 3, master_copies);
  check_count("EventProtocol::gradient_buffers", 4, gradient_buffers);
}

ROUNDPIPE_INLINE void check_events(std::span<BlockEvent const> events,
                                   BlockEvent action,
                                   std::size_t blocks) {
  for (auto const& event : events) {
    auto const is_event = event.block.valid() && event.block.index() < blocks &&
                          static_cast<std::size_t>(event.kind) < block_event_kind_count &&
                          event.age <= 2;
    if (!is_event) {
      auto const text = [](BlockEvent const& e) {
        return "kind " + std::to_string(static_cast<int>(e.kind)) + " on block " +
               std::to_string(e.block.value());
      };
      throw broken_rule("EventProtocol::before",
                        1,
                        "an action of " + text(action) + " waits for an event of " + text(event) +
                            " and age " + std::to_string(event.age) + "; there are " +
                            std::to_string(blocks) + " blocks, " +
                            std::to_string(block_event_kind_count) + " kinds and ages 0 to 2");
    }
  }
}

}  // namespace detail

}  // namespace roundpipe
