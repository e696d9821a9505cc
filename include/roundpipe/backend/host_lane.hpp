// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The thread behind a stream of the host backend, and its queue.

#include <roundpipe/backend/host_event.hpp>
#include <roundpipe/backend/host_link.hpp>
#include <roundpipe/backend/host_options.hpp>
#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/backend/host_task.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#  include <sys/prctl.h>
#endif

namespace roundpipe::detail {

/// What the lanes of one backend share; it outlives the backend where a handle does.
struct HostShared {
  explicit HostShared(HostBackendOptions given)
      : options((check_options(given), std::move(given))),
        status(std::make_shared<HostStatus>()),
        link(status, options) {}

  HostBackendOptions const options;
  std::shared_ptr<HostStatus> const status;
  HostLink link;
};

/// What becomes of something enqueued when the backend has stopped.
enum class HostTaskKind : std::uint8_t {
  work,     ///< It is dropped.
  control,  ///< It runs all the same: records must complete. It may not throw, nor block then.
};

/// A FIFO that its own thread runs.
class HostLane {
 public:
  /// \throws std::system_error when no thread can be started.
  HostLane(std::shared_ptr<HostShared> shared, DeviceId device, LaneKind kind)
      : shared_(std::move(shared)),
        device_(device),
        kind_(kind),
        pause_(shared_->status),
        drained_(std::make_shared<HostEventState>(shared_->status, device)),
        thread_([this] { run(); }) {}
  HostLane(HostLane const&) = delete;
  HostLane& operator=(HostLane const&) = delete;
  /// Waits for what was enqueued, unless \ref join() was called.
  ~HostLane() {
    close();
    join();
  }

  [[nodiscard]] HostShared& shared() const noexcept { return *shared_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }
  [[nodiscard]] LaneKind kind() const noexcept { return kind_; }

  void enqueue(HostTaskKind kind, HostTask task) {
    std::unique_lock lock(mutex_);
    if (closed_) {  // the backend is gone, and so is the thread
      lock.unlock();
      if (kind == HostTaskKind::control) {
        task();
      }
      return;
    }
    incoming_.push_back({std::move(task), kind});
    shared_->status->add_pending();
    lock.unlock();
    arrived_.notify_one();
  }

  /// Names the work that is enqueued from now on, for errors.
  void annotate(char const* label) {
    enqueue(HostTaskKind::control, HostTask([this, label] { label_ = label; }));
  }

  /// Blocks until all that was enqueued has run or been dropped.
  void drain() {
    auto const record = drained_->issue();
    enqueue(HostTaskKind::control, HostTask([this, record] { drained_->complete(record); }));
    drained_->wait_through_stop(record);
  }

  /// Lets the thread end after what is enqueued.
  void close() {
    std::lock_guard const guard(mutex_);
    closed_ = true;
    arrived_.notify_one();
  }

  /// Waits for the thread's end. Precondition: \ref close() was called.
  void join() {
    std::lock_guard const guard(join_mutex_);
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  /// Whether the thread is about to end, or has ended.
  [[nodiscard]] bool finished() const {
    std::lock_guard const guard(mutex_);
    return finished_;
  }

 private:
  static constexpr std::chrono::hours longest_pause{24};  // so that no clock overflows

  struct Entry {
    HostTask task;
    HostTaskKind kind;
  };

  void run() {
#if defined(__linux__)
    // Timers may be late by 50 us by default, which is as long as the copies that are emulated.
    ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
#endif
    std::vector<Entry> entries;  // swapped with incoming_, so that neither allocates for long
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

  void run(Entry& entry) {
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
        if (!pause_.sleep_until(HostClock::now() + pause)) {
          return;
        }
      }
      auto const number = operations_++;
      if (auto const& fault = shared_->options.fault) {
        fault(device_, kind_, number);
      }
      entry.task();
    } catch (...) {
      shared_->status->fail(device_, kind_, label_);
    }
  }

  std::shared_ptr<HostShared> shared_;
  DeviceId device_;
  LaneKind kind_;
  HostMonitor pause_;
  std::shared_ptr<HostEventState> drained_;
  std::uint64_t operations_ = 0;  // the thread's own
  char const* label_ = nullptr;   // the thread's own

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Entry> incoming_;
  bool closed_ = false;
  bool finished_ = false;

  std::mutex join_mutex_;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace roundpipe::detail
