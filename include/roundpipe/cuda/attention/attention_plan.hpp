// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How attention is computed on a CUDA device: its options, the scratch that it takes, and
/// the slices in which a backward fits in that. Needs no device.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace roundpipe::cu {

#if defined(ROUNDPIPE_HAS_CUDNN) && ROUNDPIPE_HAS_CUDNN
/// Whether this program was built with cuDNN. CMake's target roundpipe::cuda decides.
inline constexpr bool has_cudnn = true;
#else
inline constexpr bool has_cudnn = false;
#endif

/// How \ref BasicCudaOps computes attention. Scratch depends on it, which layers ask for before
/// there is a backend, and so do the last bits of results: hence it is a part of the operations'
/// type.
struct AttentionOptions {
  /// Equal inputs give equal gradients, bit by bit, as `Ops` wants. Without it, cuDNN's backward
  /// adds in an order left to chance; it is faster and needs less scratch.
  bool deterministic = true;
  /// Whether to ask cuDNN, where the program was built with it. Else our own kernels compute all.
  bool cudnn = true;
  /// Above this, in MiB, cuDNN computes a backward in slices, one after another. Smaller slices
  /// fill a GPU less well.
  std::uint32_t scratch_mib = 1280;

  friend bool operator==(AttentionOptions const&, AttentionOptions const&) = default;
};

/// The largest head that any kernel here computes.
inline constexpr std::int64_t max_head_dim = 256;

/// \throws Error (unsupported) for a head that no kernel here computes.
inline void check_head_dim(char const* operation, AttentionShape const& shape) {
  if (shape.head_dim % 2 != 0 || shape.head_dim > max_head_dim || shape.head_dim < 2) {
    throw Error(Errc::unsupported,
                std::string(operation) + ": heads of " + std::to_string(shape.head_dim) +
                    " elements; a GPU computes even sizes up to 256");
  }
}

namespace detail {

[[nodiscard]] inline Bytes bytes_of(std::int64_t n) noexcept {
  return static_cast<Bytes>(n);
}

/// For each query, the sum of the products of its output and the output's gradient, in f32.
[[nodiscard]] inline Bytes row_sums_bytes(AttentionShape const& s) noexcept {
  return align_up(bytes_of(s.rows) * bytes_of(s.heads) * bytes_of(s.length) * sizeof(float));
}

/// A bound of what cuDNN's backward takes for one head of one row: row sums, keys' and values'
/// gradients in 16 bits for each query head, and the queries' gradient in f32; or, deterministic
/// and before Blackwell, instead of that the 16-bit gradients of all scores, from which it then
/// forms the queries' gradient by a product of its own.
[[nodiscard]] inline Bytes cudnn_head_bytes(AttentionShape const& s, bool deterministic) noexcept {
  auto const length = align_up(bytes_of(s.length), 128);
  auto const vector = 4 * align_up(bytes_of(s.head_dim), 16);
  return length * (8 + vector + (deterministic ? std::max(vector, 2 * length) : vector));
}

/// What cuDNN takes besides, whatever the extents.
inline constexpr Bytes cudnn_fixed_bytes = Bytes{1} << 20;

/// The scratch for cuDNN's backward: for all heads at once, or, to keep it small, for as many as
/// the options leave room for, but for 8 at least.
[[nodiscard]] inline Bytes cudnn_scratch_bytes(AttentionShape const& s,
                                               AttentionOptions options) noexcept {
  constexpr Bytes heads_at_least = 8;
  auto const head = cudnn_head_bytes(s, options.deterministic);
  auto const all = bytes_of(s.rows) * bytes_of(s.heads) * head;
  return cudnn_fixed_bytes +
         std::min(all, std::max(Bytes{options.scratch_mib} << 20, heads_at_least * head));
}

/// The part of a backward that cuDNN computes at once: some rows, or some key heads of one row with
/// the query heads that read them.
struct AttentionSlice {
  std::int64_t rows = 0;
  std::int64_t kv_heads = 0;
};

/// The largest slices, all equal but the last, that fit in \ref cudnn_scratch_bytes; none, with 0
/// rows, where a single key head's query heads do not.
[[nodiscard]] inline AttentionSlice attention_slice(AttentionShape const& s,
                                                    AttentionOptions options) noexcept {
  auto const room = cudnn_scratch_bytes(s, options) - cudnn_fixed_bytes;
  auto const heads = static_cast<std::int64_t>(room / cudnn_head_bytes(s, options.deterministic));
  auto const even = [](std::int64_t all, std::int64_t most) {
    auto const parts = (all + most - 1) / most;
    return (all + parts - 1) / parts;
  };
  if (heads >= s.heads) {
    return {even(s.rows, heads / s.heads), s.kv_heads};
  }
  auto const groups = heads / (s.heads / s.kv_heads);
  return groups == 0 ? AttentionSlice{} : AttentionSlice{1, even(s.kv_heads, groups)};
}

}  // namespace detail

/// Scratch for \c attention and \c attention_backward.
[[nodiscard]] inline Bytes attention_scratch_bytes(AttentionShape const& shape,
                                                   AttentionOptions options = {}) noexcept {
  auto bytes = detail::row_sums_bytes(shape);
  if (has_cudnn && options.cudnn && size_of(shape.dtype) == 2) {
    bytes = std::max(bytes, detail::cudnn_scratch_bytes(shape, options));
  }
  return align_up(bytes);
}

}  // namespace roundpipe::cu
