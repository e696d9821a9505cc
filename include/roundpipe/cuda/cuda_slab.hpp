// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Memory that the CUDA backend hands out, on devices and on the host.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/cuda/device/device_memory.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>

#include <atomic>
#include <utility>

namespace roundpipe::cu {

class CudaBackend;

/// Memory of one device, counted against its budget. The backend must outlive it.
class CudaDeviceSlab {
 public:
  CudaDeviceSlab(CudaDeviceSlab&& other) noexcept
      : memory_(std::move(other.memory_)), used_(std::exchange(other.used_, nullptr)) {}
  CudaDeviceSlab& operator=(CudaDeviceSlab&& other) noexcept {
    CudaDeviceSlab taken(std::move(other));
    std::swap(memory_, taken.memory_);
    std::swap(used_, taken.used_);
    return *this;
  }
  ~CudaDeviceSlab() {
    if (used_ != nullptr) {
      used_->fetch_sub(memory_.bytes().size());
    }
  }
  [[nodiscard]] DeviceBytes bytes() const noexcept { return memory_.bytes(); }

 private:
  friend class CudaBackend;
  CudaDeviceSlab(DeviceMemory memory, std::atomic<Bytes>* used) noexcept
      : memory_(std::move(memory)), used_(used) {}

  DeviceMemory memory_;
  std::atomic<Bytes>* used_ = nullptr;
};

/// Pinned host memory, the backend's own or a part of the caller's.
class CudaHostSlab {
 public:
  [[nodiscard]] HostBytes bytes() const noexcept {
    return borrowed_.empty() ? memory_.bytes() : borrowed_;
  }

 private:
  friend class CudaBackend;
  explicit CudaHostSlab(PinnedMemory memory) noexcept : memory_(std::move(memory)) {}
  explicit CudaHostSlab(HostBytes borrowed) noexcept : borrowed_(borrowed) {}

  PinnedMemory memory_;
  HostBytes borrowed_;
};

}  // namespace roundpipe::cu
