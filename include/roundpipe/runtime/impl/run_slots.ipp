// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/runtime/run_slots.hpp>

#include <algorithm>
#include <cstdint>

namespace roundpipe {

ROUNDPIPE_INLINE void PostedWork::add_step(int staleness) noexcept {
  ++steps;
  visible_step = std::max(visible_step, steps - static_cast<std::uint64_t>(staleness));
  pending_calls = 0;
}

}  // namespace roundpipe
