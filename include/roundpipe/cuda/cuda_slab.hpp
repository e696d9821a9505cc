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

namespace detail {

/// Bytes that are part of a total as long as this lives.
class CountedBytes {
 public:
  CountedBytes() noexcept = default;
  CountedBytes(std::atomic<Bytes>& total, Bytes bytes) noexcept
      : total_(&total), bytes_(bytes), before_(total.fetch_add(bytes)) {}
  CountedBytes(CountedBytes&& other) noexcept
      : total_(std::exchange(other.total_, nullptr)),
        bytes_(other.bytes_),
        before_(other.before_) {}
  CountedBytes& operator=(CountedBytes&& other) noexcept {
    std::swap(total_, other.total_);
    std::swap(bytes_, other.bytes_);
    std::swap(before_, other.before_);
    return *this;
  }
  ~CountedBytes() {
    if (total_ != nullptr) {
      total_->fetch_sub(bytes_);
    }
  }

  /// The total without these bytes, when they were added.
  [[nodiscard]] Bytes before() const noexcept { return before_; }

 private:
  std::atomic<Bytes>* total_ = nullptr;
  Bytes bytes_ = 0;
  Bytes before_ = 0;
};

}  // namespace detail

/// Memory of one device, counted against its budget. The backend must outlive it.
class CudaDeviceSlab {
 public:
  [[nodiscard]] DeviceBytes bytes() const noexcept { return memory_.bytes(); }

 private:
  friend class CudaBackend;
  CudaDeviceSlab(DeviceMemory memory, detail::CountedBytes counted) noexcept
      : memory_(std::move(memory)), counted_(std::move(counted)) {}

  DeviceMemory memory_;
  detail::CountedBytes counted_;
};

/// Pinned host memory, the backend's own or a part of the caller's. The backend must outlive it.
class CudaHostSlab {
 public:
  [[nodiscard]] HostBytes bytes() const noexcept {
    return borrowed_.empty() ? memory_.bytes() : borrowed_;
  }

 private:
  friend class CudaBackend;
  CudaHostSlab(PinnedMemory memory, detail::CountedBytes counted) noexcept
      : memory_(std::move(memory)), counted_(std::move(counted)) {}
  explicit CudaHostSlab(HostBytes borrowed) noexcept : borrowed_(borrowed) {}

  PinnedMemory memory_;
  HostBytes borrowed_;
  detail::CountedBytes counted_;
};

}  // namespace roundpipe::cu
