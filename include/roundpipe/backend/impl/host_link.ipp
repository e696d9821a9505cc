// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/backend/host_link.hpp>
#include <roundpipe/backend/host_options.hpp>
#include <roundpipe/backend/host_root.hpp>
#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE bool HostCopyEngine::acquire() {
  auto lock = monitor_.lock();
  auto const ticket = next_++;
  auto const is_turn = monitor_.wait(lock, [&] { return serving_ == ticket; });
  next_ -= is_turn ? 0 : 1;  // nobody will serve the ticket
  return is_turn;
}

ROUNDPIPE_INLINE void HostCopyEngine::release() {
  auto const lock = monitor_.lock();
  ++serving_;
  monitor_.notify();
}

ROUNDPIPE_INLINE HostLink::HostLink(std::shared_ptr<HostStatus> const& status,
                                    HostBackendOptions const& options)
    : options_(options.link),
      root_(status, options.root_bytes_per_second),
      peers_(status, 0),
      pause_(status) {
  for (std::size_t i = 0; i < directions * options.devices; ++i) {
    engines_.emplace_back(status);
  }
}

ROUNDPIPE_INLINE void HostLink::transfer(DeviceId device,
                                         HostCopyDirection direction,
                                         std::byte* to,
                                         std::byte const* from,
                                         Bytes bytes) {
  auto& engine = engines_[directions * device.index() + static_cast<std::size_t>(direction)];
  if (!engine.acquire()) {
    return;
  }
  carry(direction, to, from, bytes);
  engine.release();
}

ROUNDPIPE_INLINE void HostLink::carry(HostCopyDirection direction,
                                      std::byte* to,
                                      std::byte const* from,
                                      Bytes bytes) {
  auto const latency = std::chrono::duration<double>(options_.latency_seconds);
  if (latency.count() > 0 &&
      !pause_.sleep_until(HostClock::now() + std::chrono::ceil<HostClock::duration>(latency))) {
    return;
  }
  auto const limit = rate(direction);
  HostRoot::Flow flow(direction == HostCopyDirection::peer ? peers_ : root_,
                      bytes,
                      limit > 0 ? limit : HostRoot::unlimited);
  auto const half = bytes / 2;
  auto const start = HostClock::now();
  copy(to, from, half);
  auto const time_of_half = HostClock::now() - start;
  if (!flow.wait_until_left(time_of_half)) {
    return;
  }
  copy(to + half, from + half, bytes - half);
  flow.wait_until_left(HostClock::duration::zero());
}

ROUNDPIPE_INLINE double HostLink::rate(HostCopyDirection direction) const noexcept {
  switch (direction) {
    case HostCopyDirection::up:
      return options_.upload_bytes_per_second;
    case HostCopyDirection::down:
      return options_.download_bytes_per_second;
    case HostCopyDirection::peer:
      break;
  }
  return options_.peer_bytes_per_second;
}

ROUNDPIPE_INLINE void HostLink::copy(std::byte* to, std::byte const* from, Bytes bytes) noexcept {
  if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace detail

}  // namespace roundpipe
