// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief cuBLASLt's statuses as \c std::error_code, and its handles, one a device.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/current_device.hpp>

#include <cublasLt.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <source_location>
#include <string>
#include <system_error>

namespace roundpipe::cu {

/// How many devices a process may use: the size of tables by CUDA's number of a device.
inline constexpr std::size_t max_devices = 64;

namespace detail {

class BlasErrorCategory final : public std::error_category {
 public:
  [[nodiscard]] char const* name() const noexcept override { return "cublas"; }

  [[nodiscard]] std::string message(int code) const override {
    return ::cublasLtGetStatusName(static_cast<::cublasStatus_t>(code));
  }

  [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<::cublasStatus_t>(code)) {
      case ::CUBLAS_STATUS_ALLOC_FAILED:
        return std::errc::not_enough_memory;
      case ::CUBLAS_STATUS_INVALID_VALUE:
        return std::errc::invalid_argument;
      case ::CUBLAS_STATUS_NOT_SUPPORTED:
      case ::CUBLAS_STATUS_ARCH_MISMATCH:
        return std::errc::not_supported;
      default:
        return {code, *this};
    }
  }
};

}  // namespace detail

/// The category of codes made from \c cublasStatus_t.
[[nodiscard]] inline std::error_category const& blas_category() noexcept {
  static detail::BlasErrorCategory const instance;
  return instance;
}

/// Throws \ref roundpipe::Error unless \p status is \c CUBLAS_STATUS_SUCCESS.
inline void check(::cublasStatus_t status,
                  char const* what,
                  std::source_location where = std::source_location::current()) {
  if (status != ::CUBLAS_STATUS_SUCCESS) [[unlikely]] {
    throw Error(std::error_code(static_cast<int>(status), blas_category()), what, where);
  }
}

/// A cuBLASLt handle for each device, made when it is first asked for. Any thread may use a handle,
/// and several at once.
class BlasHandles {
 public:
  BlasHandles() = default;
  BlasHandles(BlasHandles const&) = delete;
  BlasHandles& operator=(BlasHandles const&) = delete;
  /// May run on any thread, once no product is under way. Where the driver has shut down, at the
  /// program's end, the handles are left to the system.
  ~BlasHandles() {
    for (std::size_t d = 0; d < max_devices; ++d) {
      if (auto const made = handles_[d].load(std::memory_order_relaxed); made != nullptr) {
        CurrentDevice const current(DeviceId(d), std::nothrow);
        if (has_context(DeviceId(d))) {
          (void)::cublasLtDestroy(made);
        }
      }
    }
  }

  /// The handle of \p device, valid while this object lives. \throws Error when there is no such
  /// device, or cuBLASLt does not start.
  [[nodiscard]] ::cublasLtHandle_t of(DeviceId device) {
    require(device.valid() && device.index() < max_devices,
            Errc::invalid_argument,
            "a device's number is negative or above 63");
    auto& handle = handles_[device.index()];
    if (auto const made = handle.load(std::memory_order_acquire)) [[likely]] {
      return made;
    }
    std::lock_guard const lock(making_);
    if (handle.load(std::memory_order_relaxed) == nullptr) {
      CurrentDevice const current(device);
      ::cublasLtHandle_t made = nullptr;
      check(::cublasLtCreate(&made), "cublasLtCreate");
      handle.store(made, std::memory_order_release);
    }
    return handle.load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<::cublasLtHandle_t>, max_devices> handles_{};
  std::mutex making_;
};

}  // namespace roundpipe::cu
