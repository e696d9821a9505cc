// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/group_end.hpp>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE bool GroupEnd::set(std::size_t rank, std::string const& reason) {
  std::lock_guard const lock(mutex_);
  if (is_set()) {
    return false;
  }
  message_ = "rank " + std::to_string(rank) + " has ended the group: " + reason;
  is_set_.store(true, std::memory_order_release);
  return true;
}

ROUNDPIPE_INLINE void GroupEnd::rethrow() const {
  if (is_set()) {
    std::lock_guard const lock(mutex_);
    throw Error(Errc::aborted, message_);
  }
}

}  // namespace roundpipe
