// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief Sums over rows in an order that depends on extents alone: every block writes a partial
/// sum to scratch, and one kernel adds the partial sums in the order of the blocks.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>

#include <cuda/std/mdspan>
#include <cuda/std/span>
#include <cuda/stream_ref>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace roundpipe::cu::detail {

/// The most blocks that sum the gradient of a gain or bias, when \p per_multiprocessor run on one
/// multiprocessor: as many as the largest GPUs, with 132 multiprocessors, run at a time. A
/// constant, so that sums do not depend on the device.
[[nodiscard]] constexpr std::int64_t most_partials(std::int64_t per_multiprocessor) noexcept {
  return 132 * per_multiprocessor;
}

/// Partial sums, [blocks, width].
using Partials = ::cuda::std::mdspan<float, ::cuda::std::dextents<std::int64_t, 2>>;

/// Bytes that the partial sums of \p vectors vectors take at most: no more than one sum a vector,
/// nor than 16 elements of each of 1024 threads of a multiprocessor, unless one block has them all.
[[nodiscard]] inline Bytes partials_bytes(std::int64_t vectors, std::int64_t width) noexcept {
  auto const of_vectors = static_cast<Bytes>(vectors) * static_cast<Bytes>(width);
  auto const of_blocks = most_partials(1) * std::max<std::int64_t>(1024 * 16, width);
  return align_up(std::min(of_vectors, static_cast<Bytes>(of_blocks)) * sizeof(float));
}

/// \p scratch as partial sums. \throws Error (invalid_argument) when it is too small.
[[nodiscard]] inline Partials partials_in(DeviceBytes scratch,
                                          std::int64_t blocks,
                                          std::int64_t width) {
  require(scratch.size() >= static_cast<Bytes>(blocks * width) * sizeof(float),
          Errc::invalid_argument,
          "a gradient that sums rows has less scratch than norm_scratch_bytes(), or "
          "bias_scratch_bytes(), says");
  return Partials(reinterpret_cast<float*>(scratch.device_pointer()), blocks, width);
}

/// sum[j] += the partials of column j, for \p Columns columns a block. \p Columns lanes each add a
/// run of consecutive partials, then one lane adds the runs.
template <int Columns>
__global__ void __launch_bounds__(Columns* Columns)
    add_partials_kernel(::cuda::std::span<float> sum, Partials partials) {
  __shared__ float runs[Columns][Columns + 1];
  auto const blocks = partials.extent(0);
  auto const column = std::int64_t{blockIdx.x} * Columns + threadIdx.x;
  auto const run = (blocks + Columns - 1) / Columns;
  auto const first = run * threadIdx.y;
  auto const last = first + run < blocks ? first + run : blocks;
  float total = 0;
  if (column < partials.extent(1)) {
#pragma unroll 8
    for (auto block = first; block < last; ++block) {
      total += partials(block, column);
    }
  }
  runs[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y == 0 && column < partials.extent(1)) {
    total = 0;
    for (int i = 0; i < Columns; ++i) {
      total += runs[i][threadIdx.x];
    }
    sum[static_cast<std::size_t>(column)] += total;
  }
}

/// Enqueues sum += the sum of \p partials over blocks. \p sum is f32 of partials.extent(1).
template <OnUse = OnUse::compiled>
void add_partials(char const* operation,
                  ::cuda::stream_ref stream,
                  DeviceTensor const& sum,
                  Partials partials) {
  constexpr int columns = 32;
  launch(operation,
         stream,
         grid_of(divide_up(partials.extent(1), columns)),
         dim3(columns, columns),
         0,
         add_partials_kernel<columns>,
         elements<float>(sum),
         partials);
}

}  // namespace roundpipe::cu::detail
