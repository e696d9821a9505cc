// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Devices emulated by threads: the reference backend, and the test double for CUDA.

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
/// The backend behaves like CUDA at its worst:
/// 1. Waiting for an event that was never recorded returns at once. A wait captures the latest
///    record; recording again does not change earlier waits.
/// 2. All copies of one direction on one device, up, down or to other devices, share a copy engine,
///    first come, first served, by the time at which each reaches the head of its stream. A copy in
///    flight is never preempted. A copy takes its \ref HostLinkOptions "latency and bytes" in real
///    time and moves one half of its bytes at its start, the other half at its end.
/// 3. Device slabs start as 0xFF bytes, which are NaNs, so that reads of unwritten memory show.
///    Host slabs start as zeros.
/// 4. An exception from enqueued work (or from a hook of the options) stops the backend and becomes
///    its first error. An \ref Error keeps its code and place, anything else becomes
///    Errc::device_fault. The message names the device, and the work's annotation or the lane.
///
/// An error or \ref abort() stops the backend until \ref resume(): no work starts any more, copies
/// in flight end early, records complete without their work, streams pass all waits, and waits of
/// the host throw the first error, or Errc::aborted where there was none.
///
/// Several threads may call all members at once. Destroy everything that a backend made before the
/// backend; later destruction is allowed, but runs nothing.
class HostBackend {
 public:
  using Options = HostBackendOptions;
  using Stream = HostStream;
  using Event = HostEvent;
  using Fence = HostFence;
  using DeviceSlab = detail::HostSlab<DeviceBytes>;
  using HostSlab = detail::HostSlab<HostBytes>;

  /// \throws Error (invalid_argument) for zero devices, or for negative rates or latencies.
  explicit HostBackend(Options options = {});
  HostBackend(HostBackend const&) = delete;
  HostBackend& operator=(HostBackend const&) = delete;
  /// Aborts, and waits for the work in flight.
  ~HostBackend();

  [[nodiscard]] std::size_t device_count() const noexcept { return shared_->options.devices; }

  /// The properties from the options. \throws Error (invalid_argument) for an unknown device.
  [[nodiscard]] DeviceProperties device_properties(DeviceId device) const;

  /// A new stream with its own thread. \throws Error (invalid_argument) for an unknown device or
  /// when \p kind is a host lane; as \ref start_thread does.
  [[nodiscard]] Stream make_stream(DeviceId device, LaneKind kind);

  /// A new event, not recorded. \throws Error (invalid_argument) for an unknown device.
  [[nodiscard]] Event make_event(DeviceId device) const {
    check_device(device);
    return Event(shared_->status, device);
  }

  /// A new fence with value 0.
  [[nodiscard]] Fence make_fence() const { return Fence(shared_->status); }

  /// A slab of \p bytes of \p device. \throws Error (over_budget, which equals
  /// std::errc::not_enough_memory) when the slab exceeds the device's budget or the machine's
  /// memory; (invalid_argument) for an unknown device.
  [[nodiscard]] DeviceSlab allocate_device(DeviceId device, Bytes bytes) const {
    check_device(device);
    return {device_memory_[device.index()], bytes, std::byte{0xFF}};
  }

  /// A slab of \p bytes of host memory. \throws Error (over_budget) like \ref allocate_device().
  [[nodiscard]] HostSlab allocate_host(Bytes bytes) const {
    return {host_memory_, bytes, std::byte{0}};
  }

  /// Pauses the calling thread, which serves a host lane, as the \c delay option says.
  void before_host_action(LaneKind kind) const;

  /// Stops the backend unless it is stopped. Does not wait for the work in flight; \ref
  /// Stream::synchronize() and the destructors of streams do.
  void abort() { shared_->status->abort(); }

  /// Lets the backend work again after a stop. All streams must have been destroyed, and no other
  /// thread may use the backend meanwhile.
  void resume() { shared_->status->resume(); }

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
