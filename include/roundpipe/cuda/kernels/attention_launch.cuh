// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief How attention launches its kernels: extents, which kernel for which elements and heads,
/// and shared memory.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/half.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/kernels/attention_tiles.cuh>
#include <roundpipe/cuda/kernels/launch.cuh>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace roundpipe::cu::detail {

[[nodiscard]] inline AttentionExtents attention_extents(AttentionShape const& s) {
  return {s.length,
          s.rows * s.heads,
          static_cast<int>(s.heads),
          static_cast<int>(s.kv_heads),
          static_cast<int>(s.head_dim),
          static_cast<float>(1 / std::sqrt(static_cast<double>(s.head_dim))),
          s.window == 0 ? s.length : s.window};
}

/// A number that templates take.
template <int N>
struct Number {
  static constexpr int value = N;
};

/// Calls \p f(element, Number of the smallest head that has room).
template <class F>
void visit_attention(AttentionShape const& s, F&& f) {
  auto const with = [&](auto element) {
    if (s.head_dim <= 64) {
      f(element, Number<64>{});
    } else if (s.head_dim <= 128) {
      f(element, Number<128>{});
    } else {
      f(element, Number<256>{});
    }
  };
  if (s.dtype == DType::bf16) {
    with(BFloat16{});
  } else if (s.dtype == DType::f16) {
    with(Float16{});
  } else {
    with(float{});
  }
}

/// Enqueues \p kernel, which may take more shared memory than kernels do by default: at most
/// 85 KiB, which every device of compute capability 8.0 and above has.
template <class... Parameters, class... Arguments>
void launch_tiles(char const* operation,
                  ::cuda::stream_ref stream,
                  std::int64_t blocks,
                  int floats,
                  void (*kernel)(Parameters...),
                  Arguments const&... arguments) {
  auto const bytes = static_cast<int>(static_cast<std::size_t>(floats) * sizeof(float));
  require(blocks <= std::numeric_limits<std::int32_t>::max(),
          Errc::unsupported,
          "attention over more tiles than a grid has blocks");
  check(::cudaFuncSetAttribute(reinterpret_cast<void const*>(kernel),
                               ::cudaFuncAttributeMaxDynamicSharedMemorySize,
                               bytes),
        "cudaFuncSetAttribute");
  launch(operation,
         stream,
         static_cast<unsigned>(blocks),
         dim3(attention_threads),
         static_cast<std::size_t>(bytes),
         kernel,
         arguments...);
}

}  // namespace roundpipe::cu::detail
