// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::vector<BlockEvent> LayerEventProtocol::before(BlockEvent action,
                                                                    std::size_t blocks) const {
  require(action.block.valid() && action.block.index() < blocks,
          Errc::invalid_argument,
          "an event protocol was asked about a block that the model does not have");
  using enum BlockEventKind;
  auto const on = [&](BlockEventKind kind, std::size_t age = 0) {
    return BlockEvent{action.block, kind, age};
  };
  // With two copies or buffers, the step of the previous iteration may still run.
  auto const age_of = [](std::size_t count) -> std::size_t { return count == 2 ? 2 : 0; };
  switch (action.kind) {
    case upload:
      return {on(parameter_copy, age_of(master_copies()))};  // rule 2
    case gradient_write:
      return {on(optimizer_step, age_of(gradient_buffers()))};  // rule 4
    case optimizer_step:
      return {on(gradient_write),                                       // rule 3
              on(copies_parameters(*this) ? parameter_copy : upload)};  // rule 5 or 1
    case parameter_copy:
      return {on(upload), on(optimizer_step)};  // rules 1 and 5
  }
  return {};
}

}  // namespace roundpipe
