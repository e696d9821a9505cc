// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief The sum of a tensor's elements on the GPU, in f64 and in a fixed order.

#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>

#include <cub/block/block_reduce.cuh>
#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace roundpipe::cu {

namespace detail {

inline constexpr int sum_threads = 1024;

/// One block: each lane adds its elements in order, then a tree adds the lanes. One block is fast
/// enough, since there is only one term a position.
template <class X>
__global__ void __launch_bounds__(sum_threads)
    sum_kernel(std::int64_t size, double* total, X terms, double factor) {
  using Reduce = ::cub::BlockReduce<double, sum_threads>;
  __shared__ typename Reduce::TempStorage storage;
  double sum = 0;
#pragma unroll 8
  for (std::int64_t i = threadIdx.x; i < size; i += sum_threads) {
    sum += static_cast<double>(terms[i]);
  }
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) {
    *total = factor * sum;
  }
}

}  // namespace detail

/// Enqueues total = factor times the sum of \p terms, of f32, bf16 or f16, in an order that depends
/// on their number alone. \p total holds one number. Both must live until the work has run. Does
/// not synchronize. \throws Error (unsupported) for other types.
template <detail::OnUse = detail::OnUse::compiled>
void sum(::cuda::stream_ref stream,
         DeviceSpan<double> total,
         DeviceTensor const& terms,
         double factor) {
  detail::check_types("sum", {&terms});
  detail::launch("sum",
                 stream,
                 1,
                 dim3(detail::sum_threads),
                 0,
                 detail::sum_kernel<detail::Loose>,
                 static_cast<std::int64_t>(terms.size()),
                 total.device_pointer(),
                 detail::Loose(terms),
                 factor);
}

}  // namespace roundpipe::cu
