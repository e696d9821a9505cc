// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief CUDA runtime statuses as \c std::error_code, and the check that turns one into an
/// exception.

#include <roundpipe/core/error.hpp>

#include <cuda_runtime_api.h>

#include <source_location>
#include <string>
#include <system_error>

namespace roundpipe::cu {

namespace detail {

class ErrorCategory final : public std::error_category {
 public:
  [[nodiscard]] char const* name() const noexcept override { return "cuda"; }

  [[nodiscard]] std::string message(int code) const override {
    auto const status = static_cast<::cudaError_t>(code);
    return std::string(::cudaGetErrorString(status)) + " (" + ::cudaGetErrorName(status) + ')';
  }

  [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<::cudaError_t>(code)) {
      case ::cudaErrorMemoryAllocation:
        return std::errc::not_enough_memory;
      case ::cudaErrorInvalidValue:
        return std::errc::invalid_argument;
      case ::cudaErrorNoDevice:
      case ::cudaErrorInvalidDevice:
      case ::cudaErrorInsufficientDriver:  // what the runtime says where there is no driver
        return std::errc::no_such_device;
      case ::cudaErrorNotSupported:
        return std::errc::not_supported;
      default:
        return {code, *this};
    }
  }
};

}  // namespace detail

/// The category of codes made from \c cudaError_t. A code compares equal to the \c std::errc that
/// says the same: out of memory is \c std::errc::not_enough_memory, whichever library said it.
[[nodiscard]] inline std::error_category const& category() noexcept {
  static detail::ErrorCategory const instance;
  return instance;
}

/// \p status as a code of \ref category. (\c cudaError_t lives in the global namespace, so that
/// \c std::error_code cannot find this function by itself.)
[[nodiscard]] inline std::error_code make_error_code(::cudaError_t status) noexcept {
  return {static_cast<int>(status), category()};
}

/// Throws \ref roundpipe::Error unless \p status is \c cudaSuccess. \p what names the function
/// that gave the status, or what was tried. The runtime's own record of the last error is cleared
/// first, so that the failure is not met again in an unrelated call. An error that has broken the
/// context (an illegal address, say) cannot be cleared: every later call gives it too.
///
/// An asynchronous call may give the status of work enqueued earlier.
inline void check(::cudaError_t status,
                  char const* what,
                  std::source_location where = std::source_location::current()) {
  if (status == ::cudaSuccess) [[likely]] {
    return;
  }
  (void)::cudaGetLastError();
  throw Error(make_error_code(status), what, where);
}

}  // namespace roundpipe::cu
