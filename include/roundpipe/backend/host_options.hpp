// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The options of a host backend: devices, their memory and links, delays and faults.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace roundpipe {

/// The links between the host and each device, and from each device to the others. A copy of n
/// bytes takes latency + n / rate seconds.
struct HostLinkOptions {
  double upload_bytes_per_second = 0;    ///< 0: as fast as the host copies memory.
  double download_bytes_per_second = 0;  ///< 0: as fast as the host copies memory.
  double peer_bytes_per_second = 0;      ///< From one device to others; 0: likewise.
  double latency_seconds = 0;            ///< Of every copy; the copy holds its engine meanwhile.
};

/// The options of a \ref HostBackend.
struct HostBackendOptions {
  std::size_t devices = 1;
  Bytes device_memory_bytes = Bytes{1} << 30;  ///< A hard budget for the slabs of each device.
  Bytes host_memory_bytes = 0;                 ///< A hard budget for host slabs; 0: none.
  HostLinkOptions link{};                      ///< The link of every device.
  /// Shared by the transfers of all devices in both directions: with n transfers in flight, each
  /// gets 1/n of this rate, or the rate of its link if that is lower. 0: unlimited.
  double root_bytes_per_second = 0;
  bool reaches_peers = false;  ///< Whether copies go from one device to another, past the root.
  /// Reported by \c device_properties; these two slow nothing down.
  double flops_per_second = 1e10;
  double memory_bytes_per_second = 1e10;

  /// The pause before each piece of work (launch, copy, fill, round) of a stream, up to a day, and
  /// (with no device) before each action of a host lane. Empty: none. The threads of streams and
  /// host lanes call this, several at once.
  std::function<std::chrono::nanoseconds(DeviceId, LaneKind)> delay{};
  /// Called before each piece of work with its number on the stream, from 0. The threads of streams
  /// call this, several at once. An exception becomes the failure of that piece. Empty: none.
  std::function<void(DeviceId, LaneKind, std::uint64_t)> fault{};
};

namespace detail {

/// \throws Error (invalid_argument) for invalid options.
void check_options(HostBackendOptions const& options);

}  // namespace detail

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_options.ipp>
#endif
