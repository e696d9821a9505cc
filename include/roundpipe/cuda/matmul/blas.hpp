// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief cuBLASLt's statuses as \c std::error_code, and one handle of it a device.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/device.hpp>

#include <cublasLt.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <source_location>
#include <string>
#include <system_error>

namespace roundpipe::cu {

/// The devices that a process may use: what the tables of handles have room for.
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

/// The process's cuBLASLt handle of \p device, made at the first call. Any thread may use it, and
/// several at once.
///
/// It is never destroyed: what runs at the program's end may come after the driver has shut down,
/// and then the destruction would call into what is gone. The process's end frees it.
/// \throws Error where there is no such device, or cuBLASLt does not start.
[[nodiscard]] inline ::cublasLtHandle_t blas_handle(DeviceId device) {
  struct Table {
    std::array<std::atomic<::cublasLtHandle_t>, max_devices> handles{};
    std::mutex making;
  };
  static Table& table = *new Table;
  require(device.valid() && device.index() < max_devices,
          Errc::invalid_argument,
          "a device's number is negative or above 63");
  auto& handle = table.handles[device.index()];
  if (auto const made = handle.load(std::memory_order_acquire)) [[likely]] {
    return made;
  }
  std::lock_guard const lock(table.making);
  if (handle.load(std::memory_order_relaxed) == nullptr) {
    CurrentDevice const current(device);
    ::cublasLtHandle_t made = nullptr;
    check(::cublasLtCreate(&made), "cublasLtCreate");
    handle.store(made, std::memory_order_release);
  }
  return handle.load(std::memory_order_relaxed);
}

}  // namespace roundpipe::cu
