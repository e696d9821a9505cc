// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Events of the CUDA backend: they keep the time, and host threads sleep in their waits.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/cuda_status.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/event.hpp>

#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

namespace roundpipe::cu {

class CudaBackend;

/// \brief A point in a stream's work; models BackendEvent. See \ref EventRef for what it means.
///
/// Events come from \ref CudaBackend::make_event(). Any thread may call its members, which leave
/// the thread's current device as it is. Destruction does not block.
class CudaEvent {
 public:
  /// Blocks until the latest record is reached; meanwhile the thread sleeps.
  /// \throws Error with the first failure of enqueued work, or (aborted) after an abort.
  void wait() {
    event_.sync();
    status_->throw_if_aborted();
  }

  /// Whether the latest record is reached. Does not block. \throws Error as \ref wait().
  [[nodiscard]] bool ready() const {
    status_->throw_if_aborted();
    return event_.is_done();
  }

  /// \copydoc EventRef::seconds_since
  [[nodiscard]] double seconds_since(CudaEvent const& earlier) const {
    return event_.seconds_since(earlier);
  }

  /// The handle, which stays owned; null when moved from.
  [[nodiscard]] ::cudaEvent_t get() const noexcept { return event_.get(); }

  /// Borrows: the event must outlive what is returned.
  operator EventRef() const noexcept { return event_; }

 private:
  friend class CudaBackend;

  CudaEvent(std::shared_ptr<detail::CudaStatus> status, DeviceId device)
      : status_(std::move(status)), event_(on(device)) {}

  [[nodiscard]] static Event on(DeviceId device) {
    CurrentDevice const current(device);
    return Event(cudaEventBlockingSync);
  }

  std::shared_ptr<detail::CudaStatus> status_;
  Event event_;
};

static_assert(BackendEvent<CudaEvent>);

}  // namespace roundpipe::cu
