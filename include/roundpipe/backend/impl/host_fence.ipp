// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/backend/host_fence.hpp>
#include <roundpipe/backend/host_status.hpp>

#include <algorithm>
#include <cstdint>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void HostFenceState::signal(std::uint64_t value) {
  auto const lock = monitor_.lock();
  value_ = std::max(value_, value);
  monitor_.notify();
}

ROUNDPIPE_INLINE void HostFenceState::wait(std::uint64_t value) const {
  auto lock = monitor_.lock();
  monitor_.wait(lock, [&] { return value_ >= value; });
}

}  // namespace detail

}  // namespace roundpipe
