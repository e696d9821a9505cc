// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/backend/host_event.hpp>
#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::uint64_t HostEventState::issue() {
  auto const lock = monitor_.lock();
  return ++issued_;
}

ROUNDPIPE_INLINE void HostEventState::complete(std::uint64_t record) {
  auto const lock = monitor_.lock();
  if (record == completed_through_ + 1) {
    do {
      ++completed_through_;
    } while (std::erase(completed_early_, completed_through_ + 1) > 0);
  } else {
    completed_early_.push_back(record);
  }
  if (record == issued_) {
    time_ = HostClock::now();
  }
  monitor_.notify();
}

ROUNDPIPE_INLINE std::uint64_t HostEventState::latest() const {
  auto const lock = monitor_.lock();
  return issued_;
}

ROUNDPIPE_INLINE bool HostEventState::latest_is_complete() const {
  auto const lock = monitor_.lock();
  return is_complete(issued_);
}

ROUNDPIPE_INLINE void HostEventState::wait(std::uint64_t record) const {
  auto lock = monitor_.lock();
  monitor_.wait(lock, [&] { return is_complete(record); });
}

ROUNDPIPE_INLINE void HostEventState::wait_through_stop(std::uint64_t record) const {
  auto lock = monitor_.lock();
  monitor_.wait_through_stop(lock, [&] { return is_complete(record); });
}

ROUNDPIPE_INLINE HostClock::time_point HostEventState::time() const {
  auto const lock = monitor_.lock();
  require(issued_ > 0 && is_complete(issued_),
          Errc::invalid_argument,
          "the time of an event is known only when its latest record is complete");
  return time_;
}

ROUNDPIPE_INLINE bool HostEventState::is_complete(std::uint64_t record) const {
  return record <= completed_through_ ||
         std::find(completed_early_.begin(), completed_early_.end(), record) !=
             completed_early_.end();
}

}  // namespace detail

ROUNDPIPE_INLINE void HostEvent::wait() {
  state_->wait(state_->latest());
  throw_if_stopped();
}

ROUNDPIPE_INLINE bool HostEvent::ready() const {
  throw_if_stopped();
  return state_->latest_is_complete();
}

ROUNDPIPE_INLINE double HostEvent::seconds_since(HostEvent const& earlier) const {
  throw_if_stopped();
  return std::chrono::duration<double>(state_->time() - earlier.state_->time()).count();
}

ROUNDPIPE_INLINE void HostEvent::throw_if_stopped() const {
  if (auto const& status = state_->monitor().status()) {
    status->throw_if_stopped();
  }
}

}  // namespace roundpipe
