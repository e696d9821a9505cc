// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief Look-ups of rows by token on the GPU.

#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>
#include <roundpipe/nn/op_checks.hpp>

#include <cuda/std/span>
#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace roundpipe::cu {

namespace detail {

/// y[i] = table[tokens[i]], a row for each `threadIdx.y`; zeros for a token outside the table.
template <class Y, class T>
__global__ void __launch_bounds__(flat_threads)
    embedding_kernel(std::int64_t width,
                     std::int64_t vocabulary,
                     Y y,
                     ::cuda::std::span<std::int32_t const> tokens,
                     T table) {
  auto const rows = static_cast<std::int64_t>(tokens.size());
  auto const rows_apart = std::int64_t{gridDim.x} * blockDim.y;
  for (auto row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < rows;
       row += rows_apart) {
    std::int64_t const token = tokens[static_cast<std::size_t>(row)];
    bool const known = token >= 0 && token < vocabulary;
    for (std::int64_t at = threadIdx.x * Y::size; at < width; at += blockDim.x * Y::size) {
      auto const count = count_at<Y>(at, width);
      y.store(row * width + at,
              known ? load_pack(table, token * width + at, count) : Pack<Y::size>{},
              count);
    }
  }
}

}  // namespace detail

/// Enqueues y[i] = table[tokens[i]] for \p e.rows tokens and rows of \p e.width elements; a token
/// outside the vocabulary yields a row of zeros. Tensors are of f32, bf16 or f16 and must live
/// until the work has run. Does not synchronize.
/// \throws Error (unsupported) for other types.
template <detail::OnUse = detail::OnUse::compiled>
void embedding(::cuda::stream_ref stream,
               nn::RowExtents e,
               DeviceTensor const& y,
               DeviceTensor const& tokens,
               DeviceTensor const& table) {
  detail::check_types("embedding", {&y, &table});
  if (e.rows == 0 || e.width == 0) {
    return;
  }
  detail::visit_views(
      {&y}, {&table}, e.width, [&]<class Y, class T>(detail::Tag<Y>, detail::Tag<T>) {
        auto const warps = std::clamp<std::int64_t>(detail::divide_up(e.width, Y::size * 32), 1, 8);
        dim3 const threads(static_cast<unsigned>(32 * warps), static_cast<unsigned>(8 / warps));
        detail::launch("embedding",
                       stream,
                       detail::grid_of(detail::divide_up(e.rows, threads.y)),
                       threads,
                       0,
                       detail::embedding_kernel<Y, T>,
                       e.width,
                       table.shape()[0],
                       Y(y),
                       detail::elements<std::int32_t const>(tokens),
                       T(table));
      });
}

}  // namespace roundpipe::cu
