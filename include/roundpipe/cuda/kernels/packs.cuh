// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief How kernels read and write tensors: packs of neighbouring elements as floats, by 16-byte
/// words where a tensor's address and extents allow it.

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/half.hpp>
#include <roundpipe/core/tensor.hpp>

#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/span>
#include <cuda/std/type_traits>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>

namespace roundpipe::cu::detail {

/// \p Size neighbouring elements of a tensor, in the type in which kernels compute.
template <int Size>
using Pack = ::cuda::std::array<float, Size>;

/// The 16 bits of a BFloat16 or Float16 as a number. Exact.
template <class E>
[[nodiscard]] __device__ inline float widened(std::uint16_t bits) {
  if constexpr (::cuda::std::is_same_v<E, BFloat16>) {
    return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
  } else {
    return __half2float(__ushort_as_half(bits));
  }
}

/// Two numbers as the bits of two neighbouring elements, rounded to nearest even.
template <class E>
[[nodiscard]] __device__ inline std::uint32_t narrowed(float first, float second) {
  std::uint32_t bits = 0;
  if constexpr (::cuda::std::is_same_v<E, BFloat16>) {
    auto const pair = __floats2bfloat162_rn(first, second);
    std::memcpy(&bits, &pair, sizeof bits);
  } else {
    auto const pair = __floats2half2_rn(first, second);
    std::memcpy(&bits, &pair, sizeof bits);
  }
  return bits;
}

template <class E>
[[nodiscard]] __device__ inline float read_one(E const* from) {
  if constexpr (::cuda::std::is_same_v<E, float>) {
    return *from;
  } else {
    return widened<E>(*reinterpret_cast<std::uint16_t const*>(from));
  }
}

template <class E>
__device__ inline void write_one(E* to, float value) {
  if constexpr (::cuda::std::is_same_v<E, float>) {
    *to = value;
  } else {
    *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(narrowed<E>(value, 0));
  }
}

/// A tensor of elements \p E whose packs are aligned: whole packs move in words of up to 16 bytes.
/// Offsets of whole packs must be multiples of \p Size. Without elements, the tensor is absent.
template <class E, int Size>
class Packed {
 public:
  static constexpr int size = Size;
  /// Whether packs within rows are always whole.
  static constexpr bool whole = true;
  /// The same with another element.
  template <class Other>
  using With = Packed<Other, Size>;

 private:
  static constexpr int word_bytes = Size * sizeof(E) < 16 ? Size * sizeof(E) : 16;
  static constexpr int word_count = Size * sizeof(E) / word_bytes;
  using Word = ::cuda::std::conditional_t<word_bytes == 16, uint4, uint2>;
  static_assert(sizeof(Word) == word_bytes);

 public:
  /// A pack in registers as it lies in memory, not widened.
  struct Raw {
    Word words[word_count];
  };

  Packed() = default;
  explicit Packed(DeviceTensor const& t) : elements_(pointer(t), t.present() ? t.size() : 0) {}

  /// Whether packs of \p t are aligned, given that their offsets are multiples of \p Size.
  [[nodiscard]] static bool fits(DeviceTensor const& t) noexcept {
    return reinterpret_cast<std::uintptr_t>(t.device_pointer()) % word_bytes == 0;
  }

  [[nodiscard]] __device__ bool present() const { return !elements_.empty(); }
  [[nodiscard]] __device__ float operator[](std::int64_t at) const {
    return read_one(elements_.data() + at);
  }

  /// The pack at \p at, of which \p count elements exist; the others become 0.
  [[nodiscard]] __device__ Raw load(std::int64_t at, int count = Size) const {
    Raw raw;
    if (count >= Size) {
      auto const* const from = reinterpret_cast<Word const*>(elements_.data() + at);
#pragma unroll
      for (int i = 0; i < word_count; ++i) {
        raw.words[i] = from[i];
      }
    } else {
      ::cuda::std::array<Part, Size> parts{};
#pragma unroll
      for (int i = 0; i < Size; ++i) {
        if (i < count) {
          parts[i] = reinterpret_cast<Part const*>(elements_.data() + at)[i];
        }
      }
      raw = ::cuda::std::bit_cast<Raw>(parts);
    }
    return raw;
  }

  [[nodiscard]] __device__ static Pack<Size> widen(Raw const& raw) {
    Pack<Size> pack;
    if constexpr (::cuda::std::is_same_v<E, float>) {
      pack = ::cuda::std::bit_cast<Pack<Size>>(raw);
    } else {
      auto const pairs = ::cuda::std::bit_cast<::cuda::std::array<std::uint32_t, Size / 2>>(raw);
#pragma unroll
      for (int i = 0; i < Size / 2; ++i) {
        pack[2 * i] = widened<E>(static_cast<std::uint16_t>(pairs[i]));
        pack[2 * i + 1] = widened<E>(static_cast<std::uint16_t>(pairs[i] >> 16));
      }
    }
    return pack;
  }

  /// Writes the first \p count elements of \p pack, each rounded once.
  __device__ void store(std::int64_t at, Pack<Size> const& pack, int count = Size) const {
    if (count >= Size) {
      Raw raw;
      if constexpr (::cuda::std::is_same_v<E, float>) {
        raw = ::cuda::std::bit_cast<Raw>(pack);
      } else {
        ::cuda::std::array<std::uint32_t, Size / 2> pairs;
#pragma unroll
        for (int i = 0; i < Size / 2; ++i) {
          pairs[i] = narrowed<E>(pack[2 * i], pack[2 * i + 1]);
        }
        raw = ::cuda::std::bit_cast<Raw>(pairs);
      }
      auto* const to = reinterpret_cast<Word*>(elements_.data() + at);
#pragma unroll
      for (int i = 0; i < word_count; ++i) {
        to[i] = raw.words[i];
      }
    } else {
#pragma unroll
      for (int i = 0; i < Size; ++i) {
        if (i < count) {
          write_one(elements_.data() + at + i, pack[i]);
        }
      }
    }
  }

 private:
  using Part = ::cuda::std::conditional_t<sizeof(E) == 4, std::uint32_t, std::uint16_t>;

  [[nodiscard]] static E* pointer(DeviceTensor const& t) {
    return t.present() ? t.as<E>().device_pointer() : nullptr;
  }

  ::cuda::std::span<E> elements_;
};

/// A tensor of any element that kernels compute with, at any address. It reads and writes element
/// by element: slower, but a single instance of a kernel serves all unaligned tensors and unusual
/// types.
class Loose {
 public:
  static constexpr int size = 4;
  static constexpr bool whole = false;
  template <class Other>
  using With = Loose;
  using Raw = Pack<size>;

  Loose() = default;
  explicit Loose(DeviceTensor const& t) : memory_(t.device_pointer()), dtype_(t.dtype()) {}

  [[nodiscard]] __device__ bool present() const { return memory_ != nullptr; }
  [[nodiscard]] __device__ float operator[](std::int64_t at) const {
    switch (dtype_) {
      case DType::bf16:
        return read_one(static_cast<BFloat16 const*>(memory_) + at);
      case DType::f16:
        return read_one(static_cast<Float16 const*>(memory_) + at);
      default:
        return read_one(static_cast<float const*>(memory_) + at);
    }
  }
  [[nodiscard]] __device__ Raw load(std::int64_t at, int count) const {
    Raw pack{};
#pragma unroll
    for (int i = 0; i < size; ++i) {
      if (i < count) {
        pack[i] = (*this)[at + i];
      }
    }
    return pack;
  }
  [[nodiscard]] __device__ static Pack<size> widen(Raw const& raw) { return raw; }
  __device__ void store(std::int64_t at, Pack<size> const& pack, int count) const {
#pragma unroll
    for (int i = 0; i < size; ++i) {
      if (i < count) {
        write(at + i, pack[i]);
      }
    }
  }

 private:
  __device__ void write(std::int64_t at, float value) const {
    switch (dtype_) {
      case DType::bf16:
        write_one(static_cast<BFloat16*>(memory_) + at, value);
        break;
      case DType::f16:
        write_one(static_cast<Float16*>(memory_) + at, value);
        break;
      default:
        write_one(static_cast<float*>(memory_) + at, value);
    }
  }

  void* memory_ = nullptr;
  DType dtype_ = DType::f32;
};

/// How many elements of the pack at \p column exist in a row of \p width; 0 behind the row's end.
template <class View>
[[nodiscard]] __device__ inline int count_at(std::int64_t column, std::int64_t width) {
  if constexpr (View::whole) {
    return column < width ? View::size : 0;
  } else {
    auto const left = width - column;
    return left <= 0 ? 0 : left < View::size ? static_cast<int>(left) : View::size;
  }
}

/// exp(x), to a few ulp times |x|; results below the normal numbers are 0, which saves the steps
/// that
/// \c __expf spends on them.
[[nodiscard]] __device__ inline float exponential(float x) {
  float y = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504F));
  return y;
}

/// The pack at \p at as floats.
template <class View>
[[nodiscard]] __device__ inline Pack<View::size> load_pack(View const& view,
                                                           std::int64_t at,
                                                           int count = View::size) {
  return View::widen(view.load(at, count));
}

}  // namespace roundpipe::cu::detail
