// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief Biases of linear maps on the GPU, and their gradients.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>
#include <roundpipe/cuda/kernels/partial_sums.cuh>
#include <roundpipe/nn/op_checks.hpp>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

namespace roundpipe::cu {

namespace detail {

/// The lanes of a block, side by side in a row, and its rows.
inline constexpr int bias_lanes = 32;
inline constexpr int bias_rows = 8;

/// How blocks share a matrix: strips of columns, and parts of the rows. A block goes over the rows
/// of one part, every \c parts * bias_rows rows.
struct BiasGrid {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t strips = 0;
  std::int64_t parts = 0;

  [[nodiscard]] std::int64_t blocks() const noexcept { return strips * parts; }
  [[nodiscard]] __device__ std::int64_t part() const { return blockIdx.x / strips; }
  /// The first column of a thread's packs of \p size elements.
  [[nodiscard]] __device__ std::int64_t column(int size) const {
    return (blockIdx.x % strips * bias_lanes + threadIdx.x) * size;
  }
  /// Calls \p f(row) for each row of a thread.
  template <class F>
  __device__ void for_each_row(F&& f) const {
    for (auto row = part() * bias_rows + threadIdx.y; row < rows; row += parts * bias_rows) {
      f(row);
    }
  }
};

/// With \p rows_each rows for a thread, or more where that would take more than \p most blocks.
[[nodiscard]] inline BiasGrid bias_grid(nn::RowExtents e,
                                        int pack,
                                        std::int64_t rows_each,
                                        std::int64_t most) noexcept {
  auto const strips = divide_up(e.width, std::int64_t{pack} * bias_lanes);
  auto const parts =
      std::min(divide_up(e.rows, bias_rows * rows_each), std::max<std::int64_t>(1, most / strips));
  return {e.rows, e.width, strips, parts};
}

/// y = c + bias in each row; without c, each row is the bias.
template <class X, class B>
__global__ void __launch_bounds__(bias_lanes* bias_rows)
    add_bias_kernel(BiasGrid grid, X y, B bias, X c) {
  auto const column = grid.column(X::size);
  auto const count = count_at<X>(column, grid.width);
  if (count == 0) {
    return;
  }
  auto const added = load_pack(bias, column, count);
  grid.for_each_row([&](std::int64_t row) {
    auto const at = row * grid.width + column;
    auto sum = added;
    if (c.present()) {
      auto const other = load_pack(c, at, count);
#pragma unroll
      for (int i = 0; i < X::size; ++i) {
        sum[i] += other[i];
      }
    }
    y.store(at, sum, count);
  });
}

/// Each block writes the sums of its part of the rows to \p partials, [parts, width]. Threads add
/// their rows in order, then one thread a column adds the threads in order.
template <class X>
__global__ void __launch_bounds__(bias_lanes* bias_rows)
    bias_gradient_kernel(BiasGrid grid, Partials partials, X dy) {
  __shared__ float sums[bias_rows][bias_lanes][X::size];
  auto const column = grid.column(X::size);
  auto const count = count_at<X>(column, grid.width);
  Pack<X::size> sum = {};
  if (count > 0) {
    grid.for_each_row([&](std::int64_t row) {
      auto const v = load_pack(dy, row * grid.width + column, count);
#pragma unroll
      for (int i = 0; i < X::size; ++i) {
        sum[i] += v[i];
      }
    });
  }
#pragma unroll
  for (int i = 0; i < X::size; ++i) {
    sums[threadIdx.y][threadIdx.x][i] = sum[i];
  }
  __syncthreads();
  if (threadIdx.y == 0) {
    for (int i = 0; i < count; ++i) {
      float total = 0;
      for (int j = 0; j < bias_rows; ++j) {
        total += sums[j][threadIdx.x][i];
      }
      partials(grid.part(), column + i) = total;
    }
  }
}

/// The most blocks that sum the gradient of a bias, unless it has more strips than that.
inline constexpr std::int64_t bias_blocks = most_partials(8);

/// Bytes that the partial sums of a bias's gradient take at most: a row of sums for each part, in
/// packs of up to 8 elements.
[[nodiscard]] inline Bytes bias_partials_bytes(std::int64_t rows, std::int64_t width) noexcept {
  auto const most = std::max(width, bias_blocks * bias_lanes * 8);
  auto const of_rows = divide_up(rows, bias_rows) * width;
  return align_up(static_cast<Bytes>(std::min(most, of_rows)) * sizeof(float));
}

}  // namespace detail

/// Enqueues y = c + bias in each of \p e.rows rows of \p e.width elements; c is optional and may be
/// y. Tensors are of f32, bf16 or f16 and must live until the work has run. Does not synchronize.
/// \throws Error (unsupported) for other types.
template <detail::OnUse = detail::OnUse::compiled>
void add_bias(::cuda::stream_ref stream,
              nn::RowExtents e,
              DeviceTensor const& y,
              DeviceTensor const& bias,
              DeviceTensor const& c) {
  detail::check_types("add_bias", {&y, &bias, &c});
  if (e.rows == 0) {
    return;
  }
  constexpr std::int64_t rows_each = 8;
  constexpr std::int64_t most = 1 << 20;
  detail::visit_views(
      {&y, &c}, {&bias}, e.width, [&]<class X, class B>(detail::Tag<X>, detail::Tag<B>) {
        auto const grid = detail::bias_grid(e, X::size, rows_each, most);
        detail::launch("add_bias",
                       stream,
                       detail::grid_of(grid.blocks()),
                       dim3(detail::bias_lanes, detail::bias_rows),
                       0,
                       detail::add_bias_kernel<X, B>,
                       grid,
                       X(y),
                       B(bias),
                       X(c));
      });
}

/// Enqueues dbias += the sum of the \p e.rows rows of \p dy, in an order that depends on the
/// extents alone. \p dbias is of f32, \p dy of f32, bf16 or f16. Both and \p scratch, of
/// detail::bias_partials_bytes(), must live until the work has run. Does not synchronize.
/// \throws Error (unsupported) for other types, (invalid_argument) for less scratch.
template <detail::OnUse = detail::OnUse::compiled>
void bias_gradient(::cuda::stream_ref stream,
                   DeviceBytes scratch,
                   nn::RowExtents e,
                   DeviceTensor const& dbias,
                   DeviceTensor const& dy) {
  detail::check_types("bias_gradient", {&dbias, &dy});
  detail::check_f32("bias_gradient", dbias);
  if (e.rows == 0) {
    return;
  }
  constexpr std::int64_t rows_each = 8;
  detail::Partials partials;
  detail::visit_views({&dy}, e.width, [&]<class X>(detail::Tag<X>) {
    auto const grid = detail::bias_grid(e, X::size, rows_each, detail::bias_blocks);
    partials = detail::partials_in(scratch, grid.parts, e.width);
    detail::launch("bias_gradient",
                   stream,
                   detail::grid_of(grid.blocks()),
                   dim3(detail::bias_lanes, detail::bias_rows),
                   0,
                   detail::bias_gradient_kernel<X>,
                   grid,
                   partials,
                   X(dy));
  });
  detail::add_partials("bias_gradient", stream, dbias, partials);
}

}  // namespace roundpipe::cu
