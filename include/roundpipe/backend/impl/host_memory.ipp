// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/backend/host_memory.hpp>
#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE HostMemory HostPool::take(Bytes bytes, std::byte first) {
  if (bytes == 0) {
    return nullptr;
  }
  reserve(bytes);
  HostMemory memory(static_cast<std::byte*>(
      ::operator new(bytes, std::align_val_t{tensor_alignment_bytes}, std::nothrow)));
  if (!memory) {
    std::lock_guard const guard(mutex_);
    used_bytes_ -= bytes;
    throw Error(Errc::over_budget,
                name_ + ": the machine has no " + format_bytes(bytes) + " of memory left");
  }
  std::memset(memory.get(), std::to_integer<int>(first), bytes);
  return memory;
}

ROUNDPIPE_INLINE void HostPool::give_back(HostMemory memory, Bytes bytes) {
  std::lock_guard const guard(mutex_);
  used_bytes_ -= bytes;
  retired_.push_back(std::move(memory));
  release_retired();
}

ROUNDPIPE_INLINE void HostPool::reserve(Bytes bytes) {
  std::lock_guard const guard(mutex_);
  release_retired();
  auto const left = budget_bytes_ - used_bytes_;
  if (bytes > left) {
    throw Error(Errc::over_budget,
                name_ + ": " + format_bytes(bytes) + " wanted, " + format_bytes(left) +
                    " left of a budget of " + format_bytes(budget_bytes_) +
                    "; raise the budget in HostBackendOptions or plan for less");
  }
  used_bytes_ += bytes;
}

ROUNDPIPE_INLINE void HostPool::release_retired() {
  if (status_->idle()) {
    retired_.clear();
  }
}

}  // namespace detail

}  // namespace roundpipe
