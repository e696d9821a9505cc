// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/backend/host_event.hpp>
#include <roundpipe/backend/host_lane.hpp>
#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/backend/host_task.hpp>
#include <roundpipe/core/id.hpp>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void HostLane::enqueue(HostTaskKind kind, HostTask task) {
  std::unique_lock lock(mutex_);
  if (closed_) {  // the backend is gone, and so is the thread
    lock.unlock();
    if (kind == HostTaskKind::control) {
      task();
    }
    return;
  }
  incoming_.push_back({std::move(task), kind, label_});
  shared_->status->add_pending();
  lock.unlock();
  arrived_.notify_one();
}

ROUNDPIPE_INLINE void HostLane::annotate(char const* label) {
  std::lock_guard const guard(mutex_);
  label_ = label;
}

ROUNDPIPE_INLINE void HostLane::drain() {
  auto const record = drained_->issue();
  enqueue(HostTaskKind::control, HostTask([this, record] { drained_->complete(record); }));
  drained_->wait_through_stop(record);
}

ROUNDPIPE_INLINE void HostLane::close() {
  std::lock_guard const guard(mutex_);
  closed_ = true;
  arrived_.notify_one();
}

ROUNDPIPE_INLINE void HostLane::join() {
  std::lock_guard const guard(join_mutex_);
  if (thread_.joinable()) {
    thread_.join();
  }
}

ROUNDPIPE_INLINE bool HostLane::finished() const {
  std::lock_guard const guard(mutex_);
  return finished_;
}

ROUNDPIPE_INLINE void HostLane::run() {
#if defined(__linux__)
  // By default timers may be 50 us late, as long as some emulated copies take.
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
#endif
  std::vector<Entry> entries;  // swapped with incoming_, so that neither keeps allocating
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [&] { return closed_ || !incoming_.empty(); });
      if (incoming_.empty()) {
        finished_ = true;
        return;
      }
      entries.swap(incoming_);
    }
    for (auto& entry : entries) {
      run(entry);
      entry.task.reset();
      shared_->status->remove_pending();
    }
    entries.clear();
  }
}

ROUNDPIPE_INLINE void HostLane::run(Entry& entry) {
  if (entry.kind == HostTaskKind::control) {
    entry.task();
    return;
  }
  if (shared_->status->stopped()) {
    return;
  }
  try {
    if (auto const& delay = shared_->options.delay) {
      auto const pause = std::min<std::chrono::nanoseconds>(delay(device_, kind_), longest_pause);
      if (pause.count() > 0 && !pause_.sleep_until(HostClock::now() + pause)) {
        return;
      }
    }
    auto const number = operations_++;
    if (auto const& fault = shared_->options.fault) {
      fault(device_, kind_, number);
    }
    entry.task();
  } catch (...) {
    shared_->status->fail(device_, kind_, entry.label);
  }
}

}  // namespace detail

}  // namespace roundpipe
