// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A block of plain host memory in which tensors are aligned as on a device.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace roundpipe {

/// Owns zeroed bytes that begin at a multiple of \ref tensor_alignment_bytes. Movable; a moved-from
/// block is empty.
class AlignedMemory {
 public:
  AlignedMemory() noexcept = default;
  explicit AlignedMemory(Bytes size)
      : memory_(size == 0 ? nullptr
                          : static_cast<std::byte*>(
                                ::operator new(size, std::align_val_t{tensor_alignment_bytes}))),
        size_(size) {
    clear();
  }
  AlignedMemory(AlignedMemory&& other) noexcept : AlignedMemory() { swap(other); }
  AlignedMemory& operator=(AlignedMemory&& other) noexcept;

  [[nodiscard]] HostBytes bytes() const noexcept { return {memory_.get(), size_}; }
  /// The same as memory of a device that computes on the host.
  [[nodiscard]] DeviceBytes device_bytes() const noexcept { return {memory_.get(), size_}; }

  /// Sets every byte to zero.
  void clear() const noexcept;

 private:
  struct Deleter {
    void operator()(std::byte* memory) const noexcept {
      ::operator delete(memory, std::align_val_t{tensor_alignment_bytes});
    }
  };

  void swap(AlignedMemory& other) noexcept {
    memory_.swap(other.memory_);
    std::swap(size_, other.size_);
  }

  std::unique_ptr<std::byte, Deleter> memory_;
  Bytes size_ = 0;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/aligned_memory.ipp>
#endif
