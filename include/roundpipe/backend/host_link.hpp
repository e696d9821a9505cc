// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Copies between the host and emulated devices: one engine per device and direction.

#include <roundpipe/backend/host_options.hpp>
#include <roundpipe/backend/host_root.hpp>
#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

namespace roundpipe::detail {

enum class HostCopyDirection : std::uint8_t { up, down };

/// Serves one copy at a time, in the order of arrival, each to its end.
class HostCopyEngine {
 public:
  explicit HostCopyEngine(std::shared_ptr<HostStatus> status) : monitor_(std::move(status)) {}

  /// Returns true when it is the caller's turn, and false if the backend stopped first.
  bool acquire() {
    auto lock = monitor_.lock();
    auto const ticket = next_++;
    return monitor_.wait(lock, [&] { return serving_ == ticket; });
  }
  void release() {
    auto const lock = monitor_.lock();
    ++serving_;
    monitor_.notify();
  }

 private:
  HostMonitor monitor_;
  std::uint64_t next_ = 0;
  std::uint64_t serving_ = 0;
};

/// The links of all devices.
class HostLink {
 public:
  HostLink(std::shared_ptr<HostStatus> const& status, HostBackendOptions const& options)
      : options_(options.link), root_(status, options.root_bytes_per_second), pause_(status) {
    for (std::size_t i = 0; i < 2 * options.devices; ++i) {
      engines_.emplace_back(status);
    }
  }

  /// Copies \p bytes on the calling thread, and returns when their time on the link has passed, or
  /// early, with any part of them copied, when the backend stops.
  ///
  /// One half moves at the transfer's start and the other at its end, so that a destination that
  /// is still in use and a source that is overwritten too early both show.
  void transfer(DeviceId device,
                HostCopyDirection direction,
                std::byte* to,
                std::byte const* from,
                Bytes bytes) {
    auto& engine = engines_[2 * device.index() + static_cast<std::size_t>(direction)];
    if (!engine.acquire()) {
      return;
    }
    carry(direction, to, from, bytes);
    engine.release();
  }

 private:
  void carry(HostCopyDirection direction, std::byte* to, std::byte const* from, Bytes bytes) {
    auto const latency = std::chrono::duration<double>(options_.latency_seconds);
    if (latency.count() > 0 &&
        !pause_.sleep_until(HostClock::now() + std::chrono::ceil<HostClock::duration>(latency))) {
      return;
    }
    auto const rate = direction == HostCopyDirection::up ? options_.upload_bytes_per_second
                                                         : options_.download_bytes_per_second;
    HostRoot::Flow flow(root_, bytes, rate > 0 ? rate : HostRoot::unlimited);
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

  static void copy(std::byte* to, std::byte const* from, Bytes bytes) noexcept {
    if (bytes > 0) {
      std::memcpy(to, from, bytes);
    }
  }

  HostLinkOptions options_;
  HostRoot root_;
  HostMonitor pause_;
  std::deque<HostCopyEngine> engines_;  // two per device; never moved
};

}  // namespace roundpipe::detail
