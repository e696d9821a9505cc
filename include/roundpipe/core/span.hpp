// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Spans of host memory and of device memory, as types that cannot be mixed up.

#include <roundpipe/config.hpp>

#include <cassert>
#include <cstddef>
#include <span>
#include <type_traits>

namespace roundpipe {

/// Memory that the CPU may read and write at once.
template <class T>
using HostSpan = std::span<T>;

/// Memory of a device: an address and a size. The host cannot read it.
///
/// \ref device_pointer() is for kernels. Kernels of the host backend run on the CPU when the stream
/// reaches them, not when they are enqueued.
template <class T>
class DeviceSpan {
 public:
  constexpr DeviceSpan() noexcept = default;
  ROUNDPIPE_HOST_DEVICE constexpr DeviceSpan(T* pointer, std::size_t size) noexcept
      : pointer_(pointer), size_(size) {}
  template <class U>
    requires std::is_convertible_v<U (*)[], T (*)[]>
  ROUNDPIPE_HOST_DEVICE constexpr DeviceSpan(
      DeviceSpan<U> other) noexcept  // implicit, as in std::span: adding const
      : pointer_(other.device_pointer()), size_(other.size()) {}

  [[nodiscard]] ROUNDPIPE_HOST_DEVICE constexpr T* device_pointer() const noexcept {
    return pointer_;
  }
  [[nodiscard]] ROUNDPIPE_HOST_DEVICE constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
  [[nodiscard]] ROUNDPIPE_HOST_DEVICE constexpr bool empty() const noexcept { return size_ == 0; }

  /// The part of \p count elements from \p offset on. Precondition: the part lies inside.
  [[nodiscard]] constexpr DeviceSpan subspan(std::size_t offset, std::size_t count) const noexcept {
    assert(offset + count <= size_);
    return {pointer_ + offset, count};
  }

 private:
  T* pointer_ = nullptr;
  std::size_t size_ = 0;
};

/// The elements of a tensor, for work that a stream runs: kernels take views by value and index
/// them, and so do functions that a host stream runs. The data is not there earlier, and on other
/// devices the host never reaches it.
template <class T>
class TensorView : public DeviceSpan<T> {
 public:
  constexpr TensorView() noexcept = default;
  ROUNDPIPE_HOST_DEVICE constexpr explicit TensorView(DeviceSpan<T> elements) noexcept
      : DeviceSpan<T>(elements) {}
  template <class U>
    requires std::is_convertible_v<U (*)[], T (*)[]>
  ROUNDPIPE_HOST_DEVICE constexpr TensorView(TensorView<U> other) noexcept  // adding const
      : DeviceSpan<T>(other) {}

  [[nodiscard]] ROUNDPIPE_HOST_DEVICE constexpr T* data() const noexcept {
    return this->device_pointer();
  }
  [[nodiscard]] ROUNDPIPE_HOST_DEVICE constexpr T& operator[](std::size_t i) const noexcept {
    assert(i < this->size());
    return data()[i];
  }
  [[nodiscard]] ROUNDPIPE_HOST_DEVICE constexpr T* begin() const noexcept { return data(); }
  [[nodiscard]] ROUNDPIPE_HOST_DEVICE constexpr T* end() const noexcept {
    return data() + this->size();
  }
};

using HostBytes = HostSpan<std::byte>;
using DeviceBytes = DeviceSpan<std::byte>;

}  // namespace roundpipe
