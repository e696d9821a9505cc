// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::vector<BlockEvent> BlockingProtocol::before(BlockEvent action,
                                                                  std::size_t blocks) const {
  std::vector<BlockEvent> events;
  for (auto event : rules_.before(action, blocks)) {
    for (std::size_t b = 0; b < blocks; ++b) {
      event.block = BlockId(b);
      events.push_back(event);
    }
  }
  return events;
}

}  // namespace roundpipe
