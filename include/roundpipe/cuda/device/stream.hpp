// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief An owned CUDA stream. Borrowed ones are \c cuda::stream_ref.

#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/device/event.hpp>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <cassert>
#include <new>
#include <utility>

namespace roundpipe::cu {

/// An owned \c cudaStream_t, made on the device that is current at its construction. It is
/// non-blocking: work in it never waits for the legacy default stream.
///
/// A moved-from \c Stream owns nothing: assign to it or destroy it (its null handle would name the
/// default stream). Members may run on any thread, and leave its current device as it is.
/// Destruction does not block; what was enqueued still runs, so that buffers must outlive the work,
/// not the stream.
///
/// Names follow \c cuda::stream of CCCL 3.1. Pass a \c cuda::stream_ref as a parameter only, and
/// never call its \c wait(): under g++ with CCCL 3.0.1 that function does nothing.
class Stream {
 public:
  static constexpr int default_priority = 0;

  /// Priorities of the current device. Numerically, a higher priority is a lower number.
  struct PriorityRange {
    int lowest = 0;
    int highest = 0;
  };

  [[nodiscard]] static PriorityRange priority_range() {
    PriorityRange range;
    check(::cudaDeviceGetStreamPriorityRange(&range.lowest, &range.highest),
          "cudaDeviceGetStreamPriorityRange");
    return range;
  }

  /// \param priority is clamped by the runtime to \ref priority_range. It orders kernels that are
  /// ready; a copy in flight is never preempted.
  /// \throws Error when the runtime cannot make a stream.
  explicit Stream(int priority = default_priority) : device_(current_device()) {
    check(::cudaStreamCreateWithPriority(&handle_, cudaStreamNonBlocking, priority),
          "cudaStreamCreateWithPriority");
  }
  Stream(Stream const&) = delete;
  Stream& operator=(Stream const&) = delete;
  Stream(Stream&& other) noexcept
      : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    Stream taken(std::move(other));
    std::swap(device_, taken.device_);
    std::swap(handle_, taken.handle_);
    return *this;
  }
  ~Stream() {
    if (handle_ != nullptr) {
      CurrentDevice const current(device_, std::nothrow);
      (void)::cudaStreamDestroy(handle_);
    }
  }

  /// Work enqueued from now on waits for the latest record of \p event, which may belong to another
  /// device. Does not synchronize with the host. \p event may be recorded again or destroyed
  /// afterwards.
  void wait(EventRef event) {
    CurrentDevice const current(device_);
    check(::cudaStreamWaitEvent(get(), event.get()), "cudaStreamWaitEvent");
  }

  /// Blocks the calling thread until everything enqueued is done.
  void sync() const {
    CurrentDevice const current(device_);
    check(::cudaStreamSynchronize(get()), "cudaStreamSynchronize");
  }

  /// Whether everything enqueued is done. Does not block.
  [[nodiscard]] bool is_done() const {
    CurrentDevice const current(device_);
    ::cudaError_t const status = ::cudaStreamQuery(get());
    if (status == ::cudaErrorNotReady) {
      (void)::cudaGetLastError();  // an answer, not a failure, but the runtime keeps it as one
      return false;
    }
    check(status, "cudaStreamQuery");
    return true;
  }

  /// The priority that the runtime gave.
  [[nodiscard]] int priority() const {
    CurrentDevice const current(device_);
    int priority = 0;
    check(::cudaStreamGetPriority(get(), &priority), "cudaStreamGetPriority");
    return priority;
  }

  /// The handle, which stays owned.
  [[nodiscard]] ::cudaStream_t get() const noexcept {
    assert(handle_ != nullptr && "a moved-from Stream");
    return handle_;
  }

  /// Borrows: the stream must outlive what is returned.
  operator ::cuda::stream_ref() const noexcept { return ::cuda::stream_ref(get()); }

 private:
  DeviceId device_;
  ::cudaStream_t handle_ = nullptr;
};

}  // namespace roundpipe::cu
