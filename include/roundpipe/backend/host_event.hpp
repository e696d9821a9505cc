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

/// The records of one event, numbered from 1 as they are issued; 0 stands for none.
class HostEventState {
 public:
  HostEventState(std::shared_ptr<HostStatus> status, DeviceId device)
      : monitor_(std::move(status)), device_(device) {}

  [[nodiscard]] HostMonitor const& monitor() const noexcept { return monitor_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }

  /// A new record, which the stream must \ref complete.
  std::uint64_t issue();
  void complete(std::uint64_t record);
  [[nodiscard]] std::uint64_t latest() const;
  [[nodiscard]] bool latest_is_complete() const;
  /// Returns when \p record is complete or the backend has stopped.
  void wait(std::uint64_t record) const;
  /// Returns when \p record is complete; streams complete theirs also after a stop.
  void wait_through_stop(std::uint64_t record) const;
  /// When the latest record was completed. \throws Error (invalid_argument) when it was not.
  [[nodiscard]] HostClock::time_point time() const;

 private:
  [[nodiscard]] bool is_complete(std::uint64_t record) const;

  HostMonitor monitor_;
  DeviceId device_;
  std::uint64_t issued_ = 0;
  std::uint64_t completed_through_ = 0;         // this record and all before it
  std::vector<std::uint64_t> completed_early_;  // before one issued earlier, on a slower stream
  HostClock::time_point time_;
};

}  // namespace detail

/// \brief A point in a stream's work; models BackendEvent.
///
/// Events come from \ref HostBackend::make_event(). A default-constructed one belongs to no backend
/// and serves inline streams only. All members may be called from several threads at once. An event
/// may be destroyed while records of it or waits for it are pending. One that was moved from can
/// only be assigned to or destroyed.
class HostEvent {
 public:
  HostEvent() : HostEvent(nullptr, DeviceId::none()) {}
  HostEvent(HostEvent&&) noexcept = default;
  HostEvent& operator=(HostEvent&&) noexcept = default;
  ~HostEvent() = default;

  /// Blocks until the latest record is complete; returns at once when there is none.
  /// \throws Error with the backend's first error, or with Errc::aborted, once it has stopped, be
  /// the record complete or not.
  void wait();

  /// Whether the latest record is complete; true when there is none. \throws Error as \ref wait().
  [[nodiscard]] bool ready() const;

  /// Seconds from \p earlier's latest record to this event's, by the host's steady clock.
  /// \throws Error (invalid_argument) unless both are complete; as \ref wait() after a stop.
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
