// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Copies between the host and emulated devices, and from one to another: one engine for
/// each device and direction.

#include <roundpipe/backend/host_options.hpp>
#include <roundpipe/backend/host_root.hpp>
#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

namespace roundpipe::detail {

enum class HostCopyDirection : std::uint8_t { up, down, peer };

/// Serves one copy at a time, in order of arrival, each to its end.
class HostCopyEngine {
 public:
  explicit HostCopyEngine(std::shared_ptr<HostStatus> status) : monitor_(std::move(status)) {}

  /// Returns true when it is the caller's turn, and false if the backend stops first.
  bool acquire();
  void release();

 private:
  HostMonitor monitor_;
  std::uint64_t next_ = 0;
  std::uint64_t serving_ = 0;
};

/// The links of all devices.
class HostLink {
 public:
  HostLink(std::shared_ptr<HostStatus> const& status, HostBackendOptions const& options);

  /// Copies \p bytes on the calling thread and returns when their time on the link has passed. When
  /// the backend stops, returns early with any part copied.
  ///
  /// One half moves at the start of the transfer and the other at its end. This exposes a
  /// destination that is still in use and a source that is overwritten too early.
  void transfer(DeviceId device,
                HostCopyDirection direction,
                std::byte* to,
                std::byte const* from,
                Bytes bytes);

 private:
  void carry(HostCopyDirection direction, std::byte* to, std::byte const* from, Bytes bytes);

  [[nodiscard]] double rate(HostCopyDirection direction) const noexcept;

  static void copy(std::byte* to, std::byte const* from, Bytes bytes) noexcept;

  static constexpr std::size_t directions = 3;

  HostLinkOptions options_;
  HostRoot root_;
  HostRoot peers_;  // without limit: what goes from device to device does not pass the root
  HostMonitor pause_;
  std::deque<HostCopyEngine> engines_;  // for each device: by direction; never moved
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_link.ipp>
#endif
