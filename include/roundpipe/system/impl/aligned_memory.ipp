// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/span.hpp>
#include <roundpipe/system/aligned_memory.hpp>

#include <cstring>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE AlignedMemory& AlignedMemory::operator=(AlignedMemory&& other) noexcept {
  AlignedMemory taken(std::move(other));
  swap(taken);
  return *this;
}

ROUNDPIPE_INLINE void AlignedMemory::clear() const noexcept {
  if (size_ > 0) {
    std::memset(memory_.get(), 0, size_);
  }
}

}  // namespace roundpipe
