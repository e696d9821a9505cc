// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/system/first_error.hpp>

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE bool FirstError::set(std::exception_ptr error) noexcept {
  std::lock_guard const lock(mutex_);
  if (error_) {
    return false;
  }
  error_ = std::move(error);
  is_set_.store(true, std::memory_order_release);
  return true;
}

ROUNDPIPE_INLINE void FirstError::rethrow() const {
  if (is_set()) {
    std::lock_guard const lock(mutex_);
    std::rethrow_exception(error_);
  }
}

ROUNDPIPE_INLINE void FirstError::clear() noexcept {
  std::lock_guard const lock(mutex_);
  error_ = nullptr;
  is_set_.store(false, std::memory_order_release);
}

}  // namespace roundpipe
