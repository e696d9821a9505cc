// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Events of the CUDA backend: they keep the time, and host threads sleep in their waits.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/cuda_status.hpp>
#include <roundpipe/cuda/device.hpp>
#include <roundpipe/cuda/error.hpp>
#include <roundpipe/cuda/event.hpp>

#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

namespace roundpipe::cu {

class CudaBackend;

/// \brief A point in a stream's work; models BackendEvent. See \ref EventRef for what it means.
///
/// Events come from \ref CudaBackend::make_event(). Destruction does not block.
class CudaEvent {
 public:
  CudaEvent(CudaEvent&& other) noexcept
      : status_(std::move(other.status_)), handle_(std::exchange(other.handle_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&& other) noexcept {
    CudaEvent taken(std::move(other));
    std::swap(status_, taken.status_);
    std::swap(handle_, taken.handle_);
    return *this;
  }
  ~CudaEvent() {
    if (handle_ != nullptr) {
      (void)::cudaEventDestroy(handle_);
    }
  }

  /// Blocks until the latest record is reached; the thread sleeps meanwhile.
  /// \throws Error with the first failure of enqueued work, or (aborted) after an abort.
  void wait() {
    EventRef(handle_).sync();
    status_->throw_if_aborted();
  }

  /// Whether the latest record is reached. Does not block. \throws Error as \ref wait().
  [[nodiscard]] bool ready() const {
    status_->throw_if_aborted();
    return EventRef(handle_).is_done();
  }

  /// Seconds from \p earlier's latest record to this one's, by the device's clock: to half a
  /// microsecond, and to 24 bits. \throws Error unless both are reached.
  [[nodiscard]] double seconds_since(CudaEvent const& earlier) const {
    float milliseconds = 0;
    check(::cudaEventElapsedTime(&milliseconds, earlier.handle_, handle_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

  /// The handle, which stays owned; null when moved from.
  [[nodiscard]] ::cudaEvent_t get() const noexcept { return handle_; }

  /// Borrows: the event must outlive what is returned.
  operator EventRef() const noexcept { return EventRef(handle_); }

 private:
  friend class CudaBackend;

  CudaEvent(std::shared_ptr<detail::CudaStatus> status, DeviceId device)
      : status_(std::move(status)) {
    CurrentDevice const current(device);
    check(::cudaEventCreateWithFlags(&handle_, cudaEventBlockingSync), "cudaEventCreateWithFlags");
  }

  std::shared_ptr<detail::CudaStatus> status_;
  ::cudaEvent_t handle_ = nullptr;
};

static_assert(BackendEvent<CudaEvent>);

}  // namespace roundpipe::cu
