// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief CUDA events, owned and borrowed.

#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/error.hpp>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <new>
#include <utility>

namespace roundpipe::cu {

/// A borrowed \c cudaEvent_t: the event must outlive it. Copies name the same event.
///
/// An event marks a place in a stream and remembers only its latest \ref record. A wait that has
/// begun keeps the record that it saw, whatever is recorded later. An event that was never recorded
/// counts as done, and a wait for it returns at once: record first, then wait.
///
/// A reference does not know the event's device: its members need a thread whose current device has
/// a context. Those of \ref Event work on any thread.
///
/// Names but \ref seconds_since follow \c cuda::event_ref of CCCL 3.1.
class EventRef {
 public:
  /// Implicit: a handle is a borrowed event.
  constexpr EventRef(::cudaEvent_t handle) noexcept : handle_(handle) {}
  EventRef(std::nullptr_t) = delete;
  EventRef(int) = delete;

  /// Marks the end of what \p stream holds now. Does not synchronize. The stream's device must be
  /// the one that the event was made on. \p stream may be destroyed afterwards.
  void record(::cuda::stream_ref stream) const {
    check(::cudaEventRecord(handle_, stream.get()), "cudaEventRecord");
  }

  /// Blocks the calling thread until the latest record is reached.
  void sync() const { check(::cudaEventSynchronize(handle_), "cudaEventSynchronize"); }

  /// Whether the latest record is reached. Does not block.
  [[nodiscard]] bool is_done() const {
    ::cudaError_t const status = ::cudaEventQuery(handle_);
    if (status == ::cudaErrorNotReady) {
      (void)::cudaGetLastError();  // an answer, not a failure, but the runtime keeps it as one
      return false;
    }
    check(status, "cudaEventQuery");
    return true;
  }

  /// Seconds from \p earlier's latest record to this one's, by the device's clock: to half a
  /// microsecond, and to 24 bits. Both events must keep the time. \throws Error unless both records
  /// are reached.
  [[nodiscard]] double seconds_since(EventRef earlier) const {
    float milliseconds = 0;
    check(::cudaEventElapsedTime(&milliseconds, earlier.handle_, handle_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

  [[nodiscard]] constexpr ::cudaEvent_t get() const noexcept { return handle_; }

  [[nodiscard]] friend constexpr bool operator==(EventRef, EventRef) noexcept = default;

 private:
  ::cudaEvent_t handle_;
};

/// An owned \c cudaEvent_t, made on the device that is current at its construction. See
/// \ref EventRef for what an event means. May be waited for from any device's stream.
///
/// A moved-from \c Event owns nothing: assign to it or destroy it. Members may run on any thread,
/// and leave its current device as it is. Destruction does not block; waits that have begun still
/// hold.
///
/// Names but \ref seconds_since follow \c cuda::event of CCCL 3.1.
class Event {
 public:
  /// An event that does not keep the time; threads spin while they wait for it.
  /// \throws Error when the runtime cannot make an event.
  Event() : Event(cudaEventDisableTiming) {}
  /// \param flags as \c cudaEventCreateWithFlags takes them: \c cudaEventDefault keeps the time,
  ///        \c cudaEventBlockingSync also lets threads sleep.
  explicit Event(unsigned flags) : device_(current_device()) {
    check(::cudaEventCreateWithFlags(&handle_, flags), "cudaEventCreateWithFlags");
  }
  Event(Event const&) = delete;
  Event& operator=(Event const&) = delete;
  Event(Event&& other) noexcept
      : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    Event taken(std::move(other));
    std::swap(device_, taken.device_);
    std::swap(handle_, taken.handle_);
    return *this;
  }
  ~Event() {
    if (handle_ != nullptr) {
      CurrentDevice const current(device_, std::nothrow);
      (void)::cudaEventDestroy(handle_);
    }
  }

  /// \copydoc EventRef::record
  void record(::cuda::stream_ref stream) {
    CurrentDevice const current(device_);
    EventRef(handle_).record(stream);
  }

  /// \copydoc EventRef::sync
  void sync() const {
    CurrentDevice const current(device_);
    EventRef(handle_).sync();
  }

  /// \copydoc EventRef::is_done
  [[nodiscard]] bool is_done() const {
    CurrentDevice const current(device_);
    return EventRef(handle_).is_done();
  }

  /// \copydoc EventRef::seconds_since
  [[nodiscard]] double seconds_since(EventRef earlier) const {
    CurrentDevice const current(device_);
    return EventRef(handle_).seconds_since(earlier);
  }

  /// The handle, which stays owned; null when moved from.
  [[nodiscard]] ::cudaEvent_t get() const noexcept { return handle_; }

  /// Borrows: the event must outlive what is returned.
  operator EventRef() const noexcept { return EventRef(handle_); }

 private:
  DeviceId device_;
  ::cudaEvent_t handle_ = nullptr;
};

}  // namespace roundpipe::cu
