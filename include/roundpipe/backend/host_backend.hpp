// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Devices emulated by threads: the reference backend, and the test double of CUDA's.

#include <roundpipe/backend/host_event.hpp>
#include <roundpipe/backend/host_fence.hpp>
#include <roundpipe/backend/host_lane.hpp>
#include <roundpipe/backend/host_memory.hpp>
#include <roundpipe/backend/host_options.hpp>
#include <roundpipe/backend/host_stream.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace roundpipe {

/// \brief A set of devices that are threads of this process; models Backend.
///
/// It behaves as CUDA does at its worst:
/// 1. Waiting for an event that was never recorded returns at once; a wait captures the latest
///    record; recording again does not move waits issued before.
/// 2. All copies of one direction on one device share a copy engine, first come, first served by
///    when each reaches the head of its stream; a copy in flight is never preempted. A copy takes
///    its \ref HostLinkOptions "latency and bytes" in real time, and moves one half of its bytes
///    at its start and the other at its end.
/// 3. Device slabs start as 0xFF bytes, which are NaNs, so that what is read before it is written
///    shows. Host slabs start as zeros.
/// 4. What enqueued work (or a hook of the options) throws stops the backend and becomes its first
///    error: an \ref Error with its code and place, anything else as Errc::device_fault; the
///    message names the device, and the work's annotation or the lane.
///
/// Once stopped, by an error or by \ref abort(), it stays so: no piece of work starts any more,
/// copies in flight end early, records complete without their work, streams pass all waits, and
/// waits of the host throw the first error, or Errc::aborted where there was none.
///
/// All members may be called from several threads at once. What a backend makes should be destroyed
/// before it; what is not can be destroyed later, but runs nothing.
class HostBackend {
 public:
  using Options = HostBackendOptions;
  using Stream = HostStream;
  using Event = HostEvent;
  using Fence = HostFence;
  using DeviceSlab = detail::HostSlab<DeviceBytes>;
  using HostSlab = detail::HostSlab<HostBytes>;

  /// \throws Error (invalid_argument) for no device, or for negative rates or latencies.
  explicit HostBackend(Options options = {});
  HostBackend(HostBackend const&) = delete;
  HostBackend& operator=(HostBackend const&) = delete;
  /// Aborts, and waits for the pieces of work in flight.
  ~HostBackend();

  [[nodiscard]] std::size_t device_count() const noexcept { return shared_->options.devices; }

  /// What the options say. \throws Error (invalid_argument) when there is no such device.
  [[nodiscard]] DeviceProperties device_properties(DeviceId device) const;

  /// A new stream with a thread of its own. \throws Error (invalid_argument) when there is no such
  /// device or \p kind is a lane of the host; std::system_error when no thread can be started.
  [[nodiscard]] Stream make_stream(DeviceId device, LaneKind kind);

  /// A new event, not recorded. \throws Error (invalid_argument) when there is no such device.
  [[nodiscard]] Event make_event(DeviceId device) const {
    check_device(device);
    return Event(shared_->status, device);
  }

  /// A new fence, at 0.
  [[nodiscard]] Fence make_fence() const { return Fence(shared_->status); }

  /// A slab of \p bytes of \p device. \throws Error (over_budget, which equals
  /// std::errc::not_enough_memory) when it would not fit the device's budget or the machine;
  /// (invalid_argument) when there is no such device.
  [[nodiscard]] DeviceSlab allocate_device(DeviceId device, Bytes bytes) const {
    check_device(device);
    return {device_memory_[device.index()], bytes, std::byte{0xFF}};
  }

  /// A slab of \p bytes of host memory. \throws Error (over_budget) as \ref allocate_device().
  [[nodiscard]] HostSlab allocate_host(Bytes bytes) const {
    return {host_memory_, bytes, std::byte{0}};
  }

  /// Pauses the calling thread, which serves a lane of the host, as the options' \c delay says.
  void before_host_action(LaneKind kind) const;

  /// Stops the backend, unless it has stopped; does not wait for the pieces of work in flight, as
  /// \ref Stream::synchronize() and the destructors of streams do.
  void abort() { shared_->status->abort(); }

 private:
  void check_device(DeviceId device) const;

  std::shared_ptr<detail::HostShared> shared_;
  std::vector<std::shared_ptr<detail::HostPool>> device_memory_;
  std::shared_ptr<detail::HostPool> host_memory_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<detail::HostLane>> lanes_;
};

static_assert(Backend<HostBackend>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_backend.ipp>
#endif
