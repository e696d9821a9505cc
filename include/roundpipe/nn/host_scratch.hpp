// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Memory for one operation on the host, and the conversion of tensors to the type of the
/// computation.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/tensor.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace roundpipe::nn::detail {

/// Memory of the calling thread for one operation. It is always aligned to \ref
/// tensor_alignment_bytes, so that no result depends on the address. The thread keeps the memory
/// for its next operation. A thread has at most one HostScratch at a time.
class HostScratch {
 public:
  HostScratch() : pool_(pool()) {
    assert(!pool_.busy);
    pool_.busy = true;
    pool_.used = 0;
    if (pool_.blocks.size() > 1) {  // replace the pieces of earlier operations by one block
      Bytes total = 0;
      for (auto const& block : pool_.blocks) {
        total += block.bytes;
      }
      pool_.blocks.clear();
      pool_.add(total);
    }
  }
  HostScratch(HostScratch const&) = delete;
  HostScratch& operator=(HostScratch const&) = delete;
  ~HostScratch() { pool_.busy = false; }

  /// \p count elements of undefined content that live as long as this object.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T* take(std::size_t count) {
    auto const bytes = align_up(count * sizeof(T));
    if (pool_.blocks.empty() || pool_.used + bytes > pool_.blocks.back().bytes) {
      pool_.add(std::max(bytes, Bytes{1} << 20));
      pool_.used = 0;
    }
    auto* const result = pool_.blocks.back().memory.get() + pool_.used;
    pool_.used += bytes;
    return reinterpret_cast<T*>(result);
  }

 private:
  struct Delete {
    void operator()(std::byte* memory) const noexcept {
      ::operator delete(memory, std::align_val_t{tensor_alignment_bytes});
    }
  };
  struct Block {
    std::unique_ptr<std::byte, Delete> memory;
    Bytes bytes = 0;
  };
  struct Pool {
    std::vector<Block> blocks;
    Bytes used = 0;  // of the last block
    bool busy = false;

    void add(Bytes bytes) {
      auto* const memory = ::operator new(bytes, std::align_val_t{tensor_alignment_bytes});
      std::unique_ptr<std::byte, Delete> owner(static_cast<std::byte*>(memory));
      blocks.push_back({std::move(owner), bytes});
    }
  };
  static Pool& pool() {
    static thread_local Pool instance;
    return instance;
  }

  Pool& pool_;
};

/// \p value as \p To, rounded to nearest, ties to even.
template <class To, class From>
[[nodiscard]] inline To convert(From value) noexcept {
  if constexpr (sizeof(To) == 2 && std::is_same_v<From, double>) {
    // Round to odd when narrowing to float: the second rounding then gives the result of a single
    // one.
    auto narrow = static_cast<float>(value);
    auto bits = std::bit_cast<std::uint32_t>(narrow);
    if (static_cast<double>(narrow) != value && (bits & 1U) == 0 && value == value &&
        (bits & 0x7fffffffU) < 0x7f800000U) {
      bool const beyond =
          value < 0 ? static_cast<double>(narrow) < value : static_cast<double>(narrow) > value;
      bits = beyond ? bits - 1 : bits + 1;
      narrow = std::bit_cast<float>(bits);
    }
    return To(narrow);
  } else {
    return static_cast<To>(value);
  }
}

/// Copies \p count elements and converts each.
template <class From, class To>
inline void convert_all(From const* from, To* to, std::size_t count) {
  constexpr std::size_t run = 32;  // a constant, so that compilers vectorize at -O2, too
  std::size_t i = 0;
  for (; i + run <= count; i += run) {
    for (std::size_t j = 0; j < run; ++j) {
      to[i + j] = convert<To>(from[i + j]);
    }
  }
  for (; i < count; ++i) {
    to[i] = convert<To>(from[i]);
  }
}

/// Whether the elements of \p tensor are of type \p T.
template <class T>
[[nodiscard]] inline bool holds(DeviceTensor const& tensor) noexcept {
  return tensor.dtype() == dtype_of<T>;
}

/// Writes the elements of \p tensor to \p to, unless they are there already.
template <class T>
inline void load_to(DeviceTensor const& tensor, T* to) {
  visit_floating(tensor.dtype(), [&](auto element) {
    auto const* from = tensor.as<decltype(element)>().device_pointer();
    if (static_cast<void const*>(from) != static_cast<void const*>(to)) {
      convert_all(from, to, tensor.size());
    }
  });
}

/// The elements of \p tensor as \p T: in place, or converted into \p scratch.
template <class T>
[[nodiscard]] inline T const* load(HostScratch& scratch, DeviceTensor const& tensor) {
  if (holds<T>(tensor)) {
    return tensor.as<T>().device_pointer();
  }
  auto* const copy = scratch.take<T>(tensor.size());
  load_to(tensor, copy);
  return copy;
}

/// As \ref load, but null when \p tensor is absent.
template <class T>
[[nodiscard]] inline T const* load_optional(HostScratch& scratch, DeviceTensor const& tensor) {
  return tensor.present() ? load<T>(scratch, tensor) : nullptr;
}

/// Where an operation writes the elements of \p tensor as \p T before \ref store: in place, or in
/// \p scratch.
template <class T>
[[nodiscard]] inline T* output(HostScratch& scratch, DeviceTensor const& tensor) {
  return holds<T>(tensor) ? tensor.as<T>().device_pointer() : scratch.take<T>(tensor.size());
}

/// As \ref output, but with the elements of \p tensor as initial values.
template <class T>
[[nodiscard]] inline T* in_out(HostScratch& scratch, DeviceTensor const& tensor) {
  auto* const values = output<T>(scratch, tensor);
  load_to(tensor, values);
  return values;
}

/// Writes \p values, from \ref output or \ref in_out, to \p tensor.
template <class T>
inline void store(DeviceTensor const& tensor, T const* values) {
  visit_floating(tensor.dtype(), [&](auto element) {
    auto* const to = tensor.as<decltype(element)>().device_pointer();
    if (static_cast<void const*>(to) != static_cast<void const*>(values)) {
      convert_all(values, to, tensor.size());
    }
  });
}

}  // namespace roundpipe::nn::detail
