// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Keeps the first error of several threads for the caller's next call.

#include <roundpipe/config.hpp>

#include <atomic>
#include <exception>
#include <mutex>

namespace roundpipe {

/// The first error wins; later ones are dropped.
class FirstError {
 public:
  /// Keeps \p error if it is the first, and says whether it is.
  bool set(std::exception_ptr error) noexcept;

  [[nodiscard]] bool is_set() const noexcept { return is_set_.load(std::memory_order_acquire); }

  /// Throws the error, if there is one.
  void rethrow() const;

  /// Forgets the error: the next one is the first.
  void clear() noexcept;

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;
  std::atomic<bool> is_set_{false};
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/first_error.ipp>
#endif
