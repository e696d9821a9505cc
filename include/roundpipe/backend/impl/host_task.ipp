// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/backend/host_task.hpp>

#include <utility>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE HostTask::HostTask(HostTask&& other) noexcept
    : table_(std::exchange(other.table_, nullptr)) {
  if (table_ != nullptr) {
    table_->relocate(other.storage_, storage_);
  }
}

ROUNDPIPE_INLINE HostTask& HostTask::operator=(HostTask&& other) noexcept {
  if (this != &other) {
    reset();
    table_ = std::exchange(other.table_, nullptr);
    if (table_ != nullptr) {
      table_->relocate(other.storage_, storage_);
    }
  }
  return *this;
}

ROUNDPIPE_INLINE void HostTask::reset() noexcept {
  if (auto const* const table = std::exchange(table_, nullptr)) {
    table->destroy(storage_);
  }
}

}  // namespace detail

}  // namespace roundpipe
