// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a host backend emulates: devices, their memory and links, delays and faults.

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

/// The link between the host and each device. A copy of n bytes takes latency + n / rate seconds.
struct HostLinkOptions {
  double upload_bytes_per_second = 0;    ///< 0: as fast as the host copies memory.
  double download_bytes_per_second = 0;  ///< 0: as fast as the host copies memory.
  double latency_seconds = 0;            ///< Of every copy, which holds its engine then.
};

/// What a \ref HostBackend is made of.
struct HostBackendOptions {
  std::size_t devices = 1;
  Bytes device_memory_bytes = Bytes{1} << 30;  ///< A hard budget for each device's slabs.
  Bytes host_memory_bytes = 0;                 ///< A hard budget for host slabs; 0: none.
  HostLinkOptions link{};                      ///< Every device has one such link.
  /// What the transfers of all devices in both directions share: each of n transfers in flight
  /// gets the n-th part of it, or its link's rate if that is less. 0: unlimited.
  double root_bytes_per_second = 0;
  /// What \c device_properties says; nothing is slowed to these two.
  double flops_per_second = 1e10;
  double memory_bytes_per_second = 1e10;

  /// The pause before each piece of work (launch, copy, fill, round) of a stream, up to a day, and
  /// (with no device) before each action of a lane of the host; empty: none.
  /// Called on the streams' threads and the host lanes', several at once.
  std::function<std::chrono::nanoseconds(DeviceId, LaneKind)> delay{};
  /// Called before each piece of work with its number on the stream, from 0, on the streams'
  /// threads, several at once; what it throws becomes the failure of that piece. Empty: none.
  std::function<void(DeviceId, LaneKind, std::uint64_t)> fault{};
};

namespace detail {

/// \throws Error (invalid_argument) for options that describe no backend.
void check_options(HostBackendOptions const& options);

}  // namespace detail

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_options.ipp>
#endif
