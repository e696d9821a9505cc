// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Whether a host backend still runs, what stopped it, and waits that a stop ends.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace roundpipe::detail {

using HostClock = std::chrono::steady_clock;

class HostMonitor;

/// The first failure or abort of a backend, and its listeners.
///
/// After a stop streams drop their work, waits end, and the cause never changes, until \ref resume.
class HostStatus {
 public:
  HostStatus() = default;
  HostStatus(HostStatus const&) = delete;
  HostStatus& operator=(HostStatus const&) = delete;

  [[nodiscard]] bool stopped() const noexcept { return stopped_.load(std::memory_order_acquire); }

  /// \throws Error with the cause of the stop, if the backend is stopped. Each call throws a new
  /// object, so that threads share none.
  void throw_if_stopped() const;

  /// Stops with Errc::aborted, unless the backend is stopped.
  void abort();

  /// Stops with the exception that is being handled, thrown by work of \p device and \p lane: an
  /// \ref Error with its own code, others as Errc::device_fault. \p label names the work, if it is
  /// not null.
  void fail(DeviceId device, LaneKind lane, char const* label);

  /// Forgets the stop. No stream may be left, and no other thread may use the backend.
  void resume();

  /// Counts work that is enqueued and has neither run nor been dropped.
  void add_pending() noexcept { pending_.fetch_add(1, std::memory_order_relaxed); }
  void remove_pending() noexcept { pending_.fetch_sub(1, std::memory_order_release); }
  [[nodiscard]] bool idle() const noexcept { return pending_.load(std::memory_order_acquire) == 0; }

 private:
  friend class HostMonitor;

  struct Cause {
    std::error_code code;
    std::string message;
    std::source_location where;
  };

  inline void stop(Cause cause);

  std::atomic<bool> stopped_ = false;
  std::atomic<std::size_t> pending_ = 0;
  std::mutex mutex_;  // locked before the mutex of a monitor, never after
  Cause cause_;       // written before stopped_ is set
  std::vector<HostMonitor*> monitors_;
};

/// A mutex and a condition variable whose waiters a stop wakes.
class HostMonitor {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// \param status The status whose stop ends waits. Null: only the awaited condition ends them.
  explicit HostMonitor(std::shared_ptr<HostStatus> status);
  HostMonitor(HostMonitor const&) = delete;
  HostMonitor& operator=(HostMonitor const&) = delete;
  ~HostMonitor();

  [[nodiscard]] Lock lock() const { return Lock(mutex_); }
  [[nodiscard]] std::shared_ptr<HostStatus> const& status() const noexcept { return status_; }
  [[nodiscard]] bool stopped() const noexcept { return status_ && status_->stopped(); }
  void notify() const noexcept { changed_.notify_all(); }

  /// Waits until \p holds() or a stop, and returns the value of \p holds().
  template <class Predicate>
  bool wait(Lock& lock, Predicate holds) const {
    changed_.wait(lock, [&] { return holds() || stopped(); });
    return holds();
  }

  /// Waits until \p holds(), also after a stop.
  template <class Predicate>
  void wait_through_stop(Lock& lock, Predicate holds) const {
    changed_.wait(lock, std::move(holds));
  }

  /// Waits until \p time, a notification or a stop; may also return without a cause.
  void wait_until(Lock& lock, HostClock::time_point time) const;

  /// Waits until \p time or a stop, and returns whether \p time was reached.
  bool sleep_until(HostClock::time_point time) const;

 private:
  friend class HostStatus;

  std::shared_ptr<HostStatus> status_;
  std::size_t place_ = 0;  // among the status's monitors, by its mutex
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_status.ipp>
#endif
