// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Events of the host backend: points in a stream's work, with CUDA's semantics.

#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace roundpipe {

class HostBackend;
class HostStream;

namespace detail {

/// The records of one event, numbered from 1 in issue order; 0 means none.
class HostEventState {
 public:
  HostEventState(std::shared_ptr<HostStatus> status, DeviceId device)
      : monitor_(std::move(status)), device_(device) {}

  [[nodiscard]] HostMonitor const& monitor() const noexcept { return monitor_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }

  /// Starts a new record, which the stream must \ref complete.
  std::uint64_t issue();
  void complete(std::uint64_t record);
  [[nodiscard]] std::uint64_t latest() const;
  [[nodiscard]] bool latest_is_complete() const;
  /// Returns when \p record is complete or the backend has stopped.
  void wait(std::uint64_t record) const;
  /// Returns when \p record is complete. Streams complete their records even after a stop.
  void wait_through_stop(std::uint64_t record) const;
  /// The completion time of the latest record. \throws Error (invalid_argument) when the record is
  /// not complete.
  [[nodiscard]] HostClock::time_point time() const;

 private:
  [[nodiscard]] bool is_complete(std::uint64_t record) const;

  HostMonitor monitor_;
  DeviceId device_;
  std::uint64_t issued_ = 0;
  std::uint64_t completed_through_ = 0;         // this record and all earlier ones
  std::vector<std::uint64_t> completed_early_;  // before an earlier record of a slower stream
  HostClock::time_point time_;
};

}  // namespace detail

/// \brief A point in a stream's work; models BackendEvent.
/// Events come from \ref HostBackend::make_event(). A default-constructed event belongs to no
/// backend and serves inline streams only. Several threads may call all members at once. An event
/// may be destroyed while its records or waits are pending. A moved-from event can only be assigned
/// to or destroyed.
class HostEvent {
 public:
  HostEvent() : HostEvent(nullptr, DeviceId::none()) {}
  HostEvent(HostEvent&&) noexcept = default;
  HostEvent& operator=(HostEvent&&) noexcept = default;
  ~HostEvent() = default;

  /// Blocks until the latest record is complete; returns at once when there is none.
  /// \throws Error with the backend's first error, or with Errc::aborted, once the backend has
  /// stopped, even if the record is complete.
  void wait();

  /// Whether the latest record is complete; true when there is none. \throws Error like \ref
  /// wait().
  [[nodiscard]] bool ready() const;

  /// Seconds from the latest record of \p earlier to the latest record of this event, by the host's
  /// steady clock. \throws Error (invalid_argument) unless both are complete; like \ref wait()
  /// after a stop.
  [[nodiscard]] double seconds_since(HostEvent const& earlier) const;

 private:
  friend class HostBackend;
  friend class HostStream;

  HostEvent(std::shared_ptr<detail::HostStatus> status, DeviceId device)
      : state_(std::make_shared<detail::HostEventState>(std::move(status), device)) {}

  void throw_if_stopped() const;

  std::shared_ptr<detail::HostEventState> state_;
};

static_assert(BackendEvent<HostEvent>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_event.ipp>
#endif
