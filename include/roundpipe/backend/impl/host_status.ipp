// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <utility>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void HostStatus::throw_if_stopped() const {
  if (stopped()) {
    throw Error(cause_.code, cause_.message, cause_.where);
  }
}

ROUNDPIPE_INLINE void HostStatus::abort() {
  stop({make_error_code(Errc::aborted),
        "the host backend was aborted",
        std::source_location::current()});
}

ROUNDPIPE_INLINE void HostStatus::resume() {
  std::lock_guard const guard(mutex_);
  stopped_.store(false, std::memory_order_release);
}

ROUNDPIPE_INLINE void HostStatus::fail(DeviceId device, LaneKind lane, char const* label) {
  auto const work =
      label != nullptr ? std::string(label) : std::string("work on the ") + name_of(lane) + " lane";
  auto const error = current_error(work + ", device " + std::to_string(device.value()) + ": ");
  stop({error.code(), error.message(), error.where()});
}

ROUNDPIPE_INLINE HostMonitor::HostMonitor(std::shared_ptr<HostStatus> status)
    : status_(std::move(status)) {
  if (status_) {
    std::lock_guard const guard(status_->mutex_);
    place_ = status_->monitors_.size();
    status_->monitors_.push_back(this);
  }
}

ROUNDPIPE_INLINE HostMonitor::~HostMonitor() {
  if (status_) {
    std::lock_guard const guard(status_->mutex_);
    auto& monitors = status_->monitors_;
    monitors[place_] = monitors.back();
    monitors[place_]->place_ = place_;
    monitors.pop_back();
  }
}

ROUNDPIPE_INLINE void HostMonitor::wait_until(Lock& lock, HostClock::time_point time) const {
  if (!stopped()) {
    changed_.wait_until(lock, time);
  }
}

ROUNDPIPE_INLINE bool HostMonitor::sleep_until(HostClock::time_point time) const {
  auto guard = lock();
  return !changed_.wait_until(guard, time, [&] { return stopped(); });
}

ROUNDPIPE_INLINE void HostStatus::stop(Cause cause) {
  std::lock_guard const guard(mutex_);
  if (stopped()) {
    return;
  }
  cause_ = std::move(cause);
  stopped_.store(true, std::memory_order_release);
  for (auto* const monitor : monitors_) {
    // A thread that saw stopped() false under this mutex is waiting by now, and gets notified.
    {
      auto const lock = monitor->lock();
    }
    monitor->notify();
  }
}

}  // namespace detail

}  // namespace roundpipe
