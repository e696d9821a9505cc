// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Fences of the CUDA backend: a number in pinned host memory that streams wait for.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/cuda_status.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/error.hpp>

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace roundpipe::cu {

class CudaBackend;
class CudaStream;

/// \brief A counter, at first 0, that the host raises and streams wait for; models BackendFence.
///
/// Fences come from \ref CudaBackend::make_fence() and \ref CudaBackend::make_held_fence(). A fence
/// must outlive the waits for it. Any thread may destroy it; that waits for the device's work, as
/// giving pinned memory back does.
class CudaFence {
 public:
  CudaFence(CudaFence&& other) noexcept
      : status_(std::move(other.status_)),
        device_(other.device_),
        flag_(std::exchange(other.flag_, nullptr)) {}
  CudaFence& operator=(CudaFence&& other) noexcept {
    CudaFence taken(std::move(other));
    std::swap(status_, taken.status_);
    std::swap(device_, taken.device_);
    std::swap(flag_, taken.flag_);
    return *this;
  }
  ~CudaFence() {
    if (flag_ != nullptr) {
      status_->remove_fence(*flag_);
      CurrentDevice const current(device_, std::nothrow);
      (void)::cudaFreeHost(flag_);
    }
  }

  /// Raises the value to \p value: all who wait for that or less pass. A value below the present
  /// one changes nothing. Several threads may call it at once; it makes no call of CUDA.
  void signal(std::uint64_t value) {
    std::atomic_ref flag(*flag_);
    auto seen = flag.load(std::memory_order_relaxed);
    while (seen < value && !flag.compare_exchange_weak(seen, value, std::memory_order_release)) {
    }
    flag.notify_all();
  }

 private:
  friend class CudaBackend;
  friend class CudaStream;

  /// Pins its number through a context of \p device.
  CudaFence(std::shared_ptr<detail::CudaStatus> status, DeviceId device, bool opened_by_abort)
      : status_(std::move(status)), device_(device) {
    CurrentDevice const current(device);
    void* memory = nullptr;
    check(::cudaHostAlloc(
              &memory, sizeof(std::uint64_t), cudaHostAllocPortable | cudaHostAllocMapped),
          "cudaHostAlloc");
    flag_ = new (memory) std::uint64_t{0};
    if (opened_by_abort) {
      status_->add_fence(*flag_);
    }
  }

  [[nodiscard]] bool reached(std::uint64_t value) const noexcept {
    return std::atomic_ref(*flag_).load(std::memory_order_acquire) >= value;
  }
  /// Blocks the calling thread until the value is at least \p value.
  void wait(std::uint64_t value) const noexcept {
    std::atomic_ref const flag(*flag_);
    for (auto seen = flag.load(std::memory_order_acquire); seen < value;
         seen = flag.load(std::memory_order_acquire)) {
      flag.wait(seen, std::memory_order_acquire);
    }
  }
  /// The number as devices see it.
  [[nodiscard]] std::uint64_t* flag() const noexcept { return flag_; }

  std::shared_ptr<detail::CudaStatus> status_;
  DeviceId device_;
  std::uint64_t* flag_ = nullptr;
};

static_assert(BackendFence<CudaFence>);

}  // namespace roundpipe::cu
