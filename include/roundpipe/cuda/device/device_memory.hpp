// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Owned memory of a device, from a plain allocation.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/error.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <new>
#include <string>
#include <utility>

namespace roundpipe::cu {

/// One allocation on one device, its content undefined at first. Movable; a moved-from one is
/// empty. The destructor waits for the device, as \c cudaFree does, and may run on any thread.
class DeviceMemory {
 public:
  DeviceMemory() noexcept = default;
  /// \throws Error (a code equal to std::errc::not_enough_memory) when the device has no block of
  ///         that size; the message says how much is free.
  DeviceMemory(DeviceId device, Bytes bytes) : device_(device) {
    if (bytes == 0) {
      return;
    }
    CurrentDevice const current(device);
    void* memory = nullptr;
    if (auto const status = ::cudaMalloc(&memory, bytes); status != ::cudaSuccess) {
      (void)::cudaGetLastError();
      throw Error(make_error_code(status),
                  "device " + std::to_string(device.value()) + ": " + format_bytes(bytes) +
                      " wanted, " + format_bytes(memory_info(device).free_bytes) +
                      " free; lower the device's budget or free memory");
    }
    bytes_ = {static_cast<std::byte*>(memory), bytes};
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(other.device_), bytes_(std::exchange(other.bytes_, {})) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    DeviceMemory taken(std::move(other));
    std::swap(device_, taken.device_);
    std::swap(bytes_, taken.bytes_);
    return *this;
  }
  ~DeviceMemory() {
    if (!bytes_.empty()) {
      CurrentDevice const current(device_, std::nothrow);
      (void)::cudaFree(bytes_.device_pointer());
    }
  }

  /// Aligned to 256 bytes at least; valid while the owner lives.
  [[nodiscard]] DeviceBytes bytes() const noexcept { return bytes_; }

 private:
  DeviceId device_;
  DeviceBytes bytes_;
};

}  // namespace roundpipe::cu
