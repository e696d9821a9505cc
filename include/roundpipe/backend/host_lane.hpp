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
#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/system/start_thread.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#  include <sys/prctl.h>
#endif

namespace roundpipe::detail {

/// The state that the lanes of one backend share. It outlives the backend while a handle exists.
struct HostShared {
  explicit HostShared(HostBackendOptions given)
      : options((check_options(given), std::move(given))),
        status(std::make_shared<HostStatus>()),
        link(status, options) {}

  HostBackendOptions const options;
  std::shared_ptr<HostStatus> const status;
  HostLink link;
};

/// What happens to enqueued work when the backend has stopped.
enum class HostTaskKind : std::uint8_t {
  work,     ///< The lane drops it.
  control,  ///< The lane runs it: records must complete. It must not throw, or block after a stop.
};

/// A FIFO with its own thread.
class HostLane {
 public:
  /// \throws Error as \ref start_thread does.
  HostLane(std::shared_ptr<HostShared> shared, DeviceId device, LaneKind kind)
      : shared_(std::move(shared)),
        device_(device),
        kind_(kind),
        pause_(shared_->status),
        drained_(std::make_shared<HostEventState>(shared_->status, device)),
        thread_(start_thread(std::string("a ") + name_of(kind) + " stream of device " +
                                 std::to_string(device.value()),
                             [this] { run(); })) {}
  HostLane(HostLane const&) = delete;
  HostLane& operator=(HostLane const&) = delete;
  /// Waits for the enqueued work, unless \ref join() was called.
  ~HostLane() {
    close();
    join();
  }

  [[nodiscard]] HostShared& shared() const noexcept { return *shared_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }
  [[nodiscard]] LaneKind kind() const noexcept { return kind_; }

  void enqueue(HostTaskKind kind, HostTask task);

  /// Names the following work in errors.
  void annotate(char const* label);

  /// Blocks until all enqueued work has run or been dropped.
  void drain();

  /// Lets the thread end after the enqueued work.
  void close();

  /// Waits for the end of the thread. Precondition: \ref close() was called.
  void join();

  /// Whether the thread is about to end, or has ended.
  [[nodiscard]] bool finished() const;

 private:
  static constexpr std::chrono::hours longest_pause{24};  // so that no clock overflows

  struct Entry {
    HostTask task;
    HostTaskKind kind;
    char const* label;  ///< Names it in errors; null: without a name.
  };

  void run();

  void run(Entry& entry);

  std::shared_ptr<HostShared> shared_;
  DeviceId device_;
  LaneKind kind_;
  HostMonitor pause_;
  std::shared_ptr<HostEventState> drained_;
  std::uint64_t operations_ = 0;  // used by the thread only

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Entry> incoming_;
  char const* label_ = nullptr;  // of what is enqueued next
  bool closed_ = false;
  bool finished_ = false;

  std::mutex join_mutex_;
  std::thread thread_;  // last: the thread uses the other members
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_lane.ipp>
#endif
