// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/backend/host_root.hpp>
#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/core/bytes.hpp>

#include <algorithm>
#include <chrono>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE HostRoot::Flow::Flow(HostRoot& root, Bytes bytes, double link_rate)
    : root_(root),
      bytes_left_(static_cast<double>(bytes)),
      link_rate_(link_rate),
      limited_(std::min(link_rate, root.rate_) != unlimited) {
  if (limited_) {
    auto const lock = root_.monitor_.lock();
    root_.advance();
    root_.flows_.push_back(this);
    root_.changed();
  }
}

ROUNDPIPE_INLINE HostRoot::Flow::~Flow() {
  if (limited_) {
    auto const lock = root_.monitor_.lock();
    root_.advance();
    std::erase(root_.flows_, this);
    root_.changed();
  }
}

ROUNDPIPE_INLINE bool HostRoot::Flow::wait_until_left(HostClock::duration ahead) {
  if (!limited_) {
    return !root_.monitor_.stopped();
  }
  auto lock = root_.monitor_.lock();
  while (!root_.monitor_.stopped()) {
    auto const now = root_.advance();
    auto const seconds = bytes_left_ / root_.rate_of(*this);
    // A rate near 0 must not overflow the clock: look again after an hour.
    auto const left = std::chrono::ceil<HostClock::duration>(
        std::chrono::duration<double>(std::min(seconds, 3600.0)));
    if (left <= ahead) {
      return true;
    }
    root_.monitor_.wait_until(lock, now + (left - ahead));
  }
  return false;
}

ROUNDPIPE_INLINE void HostRoot::changed() const noexcept {
  if (rate_ != unlimited) {
    monitor_.notify();
  }
}

ROUNDPIPE_INLINE HostClock::time_point HostRoot::advance() {
  auto const now = HostClock::now();
  auto const seconds = std::chrono::duration<double>(now - last_).count();
  for (auto* const flow : flows_) {
    flow->bytes_left_ = std::max(0.0, flow->bytes_left_ - seconds * rate_of(*flow));
  }
  last_ = now;
  return now;
}

}  // namespace detail

}  // namespace roundpipe
