// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The only file for nvcc: kernels and their launches. Of roundpipe it includes the error check
// and the views of tensors alone.
#include <roundpipe/cuda/device/error.hpp>

#include <cub/block/block_reduce.cuh>

#include <cstddef>

#include "kernels.hpp"

namespace own_kernel {

namespace {

constexpr int threads = columns;  // in a block

__global__ void bend_rows(Out y, In x, In w) {
  auto const i = blockIdx.x * columns + threadIdx.x;
  y[i] = x[i] + w[threadIdx.x] * tanhf(x[i]);
}

// One thread for each column: it sums over rows in a fixed order, so every run has the same bits.
__global__ void bend_rows_back(Out dx, Out dw, In dy, In x, In w) {
  auto const column = threadIdx.x;
  for (std::size_t i = column; i < x.size(); i += columns) {
    auto const t = tanhf(x[i]);
    dw[column] += dy[i] * t;
    if (!dx.empty()) {
      dx[i] = dy[i] * (1 + w[column] * (1 - t * t));
    }
  }
}

__global__ void half_square_of_all(
    roundpipe::TensorView<double> loss, Out dx, In x, In y, double scale) {
  double sum = 0;
  for (std::size_t i = threadIdx.x; i < x.size(); i += threads) {
    double const difference = x[i] - y[i];
    sum += scale / 2 * difference * difference;
    if (!dx.empty()) {
      dx[i] = static_cast<float>(scale * difference);
    }
  }
  __shared__ cub::BlockReduce<double, threads>::TempStorage memory;
  auto const total = cub::BlockReduce<double, threads>(memory).Sum(sum);
  if (threadIdx.x == 0 && !loss.empty()) {
    loss[0] = total;
  }
}

}  // namespace

void bend(cudaStream_t stream, Out y, In x, In w) {
  bend_rows<<<static_cast<unsigned>(x.size() / columns), threads, 0, stream>>>(y, x, w);
  roundpipe::cu::check(cudaGetLastError(), "bend");
}

void bend_back(cudaStream_t stream, Out dx, Out dw, In dy, In x, In w) {
  bend_rows_back<<<1, threads, 0, stream>>>(dx, dw, dy, x, w);
  roundpipe::cu::check(cudaGetLastError(), "bend_back");
}

void half_square(
    cudaStream_t stream, roundpipe::TensorView<double> loss, Out dx, In x, In y, double scale) {
  half_square_of_all<<<1, threads, 0, stream>>>(loss, dx, x, y, scale);
  roundpipe::cu::check(cudaGetLastError(), "half_square");
}

}  // namespace own_kernel
