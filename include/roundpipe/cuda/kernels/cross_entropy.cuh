// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief Cross-entropy on the GPU, and its gradient.

#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>
#include <roundpipe/nn/op_checks.hpp>

#include <cub/block/block_reduce.cuh>
#include <cuda/std/limits>
#include <cuda/std/span>
#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace roundpipe::cu {

namespace detail {

/// A sum of exponentials, kept as factor exp(largest) with the largest exponent so far.
struct ExponentialSum {
  float largest = ::cuda::std::numeric_limits<float>::lowest();
  float factor = 0;
};

struct AddExponentialSums {
  [[nodiscard]] __device__ ExponentialSum operator()(ExponentialSum a, ExponentialSum b) const {
    auto const largest = fmaxf(a.largest, b.largest);
    return {largest,
            fmaf(a.factor,
                 exponential(a.largest - largest),
                 b.factor * exponential(b.largest - largest))};
  }
};

inline constexpr int loss_threads = 512;

/// One block a row, which the block reads once (the online normalizer of Milakov & Gimelshein 2018,
/// algorithm 3).
template <class X>
__global__ void __launch_bounds__(loss_threads, 2)
    cross_entropy_kernel(nn::RowExtents e,
                         ::cuda::std::span<float> losses,
                         ::cuda::std::span<float> lse,
                         X logits,
                         ::cuda::std::span<std::int32_t const> labels,
                         std::int32_t padding) {
  using Reduce = ::cub::BlockReduce<ExponentialSum, loss_threads>;
  __shared__ typename Reduce::TempStorage storage;
  constexpr int packs = 4;  // in flight in a lane
  constexpr std::int64_t step = loss_threads * X::size;
  for (std::int64_t row = blockIdx.x; row < e.rows; row += gridDim.x) {
    auto const begin = row * e.width;
    ExponentialSum sum;
    for (std::int64_t first = threadIdx.x * X::size; first < e.width; first += packs * step) {
      typename X::Raw raw[packs];
#pragma unroll
      for (int k = 0; k < packs; ++k) {
        if (auto const at = first + k * step; at < e.width) {
          raw[k] = logits.load(begin + at, count_at<X>(at, e.width));
        }
      }
      auto largest = sum.largest;
#pragma unroll
      for (int k = 0; k < packs; ++k) {
        if (auto const count = count_at<X>(first + k * step, e.width); count > 0) {
          auto const v = X::widen(raw[k]);
#pragma unroll
          for (int i = 0; i < X::size; ++i) {
            largest = i < count ? fmaxf(largest, v[i]) : largest;
          }
        }
      }
      sum.factor *= exponential(sum.largest - largest);
      sum.largest = largest;
#pragma unroll
      for (int k = 0; k < packs; ++k) {
        if (auto const count = count_at<X>(first + k * step, e.width); count > 0) {
          auto const v = X::widen(raw[k]);
#pragma unroll
          for (int i = 0; i < X::size; ++i) {
            sum.factor += i < count ? exponential(v[i] - largest) : 0.0F;
          }
        }
      }
    }
    sum = Reduce(storage).Reduce(sum, AddExponentialSums{});
    if (threadIdx.x == 0) {
      auto const i = static_cast<std::size_t>(row);
      auto const label = labels[i];
      auto const total = sum.largest + logf(sum.factor);
      lse[i] = total;
      losses[i] = label == padding                ? 0.0F
                  : label >= 0 && label < e.width ? total - logits[begin + label]
                                                  : ::cuda::std::numeric_limits<float>::quiet_NaN();
    }
    __syncthreads();  // before the storage is used again
  }
}

/// One block for \p packs packs a lane of one row.
template <class D, class X>
__global__ void __launch_bounds__(flat_threads)
    cross_entropy_backward_kernel(nn::RowExtents e,
                                  std::int64_t blocks_per_row,
                                  D dlogits,
                                  X logits,
                                  ::cuda::std::span<float const> lse,
                                  ::cuda::std::span<std::int32_t const> labels,
                                  std::int32_t padding,
                                  float scale) {
  for (std::int64_t block = blockIdx.x; block < e.rows * blocks_per_row; block += gridDim.x) {
    auto const row = block / blocks_per_row;
    auto const i_row = static_cast<std::size_t>(row);
    auto const label = labels[i_row];
    bool const counts = label != padding && label >= 0 && label < e.width;
    auto const total = lse[i_row];
    auto const step = blocks_per_row * flat_threads * D::size;
    auto at = (block % blocks_per_row * flat_threads + threadIdx.x) * D::size;
    for (; at < e.width; at += step) {
      auto const count = count_at<D>(at, e.width);
      Pack<D::size> v{};
      if (counts) {
        v = load_pack(logits, row * e.width + at, count);
#pragma unroll
        for (int i = 0; i < D::size; ++i) {
          v[i] = scale * (exponential(v[i] - total) - (at + i == label ? 1.0F : 0.0F));
        }
      }
      dlogits.store(row * e.width + at, v, count);
    }
  }
}

}  // namespace detail

/// Enqueues, for \p e.rows positions and logits of \p e.width classes: lse = the logarithm of the
/// sum of the exponentials, losses = lse - logits[label], or 0 where the label is \p padding, or
/// NaN where it is outside the vocabulary. Logits are of f32, bf16 or f16, lse and losses of f32.
/// Tensors must live until the work has run. Does not synchronize.
/// \throws Error (unsupported) for other types.
template <detail::OnUse = detail::OnUse::compiled>
void cross_entropy(::cuda::stream_ref stream,
                   nn::RowExtents e,
                   DeviceTensor const& losses,
                   DeviceTensor const& lse,
                   DeviceTensor const& logits,
                   DeviceTensor const& labels,
                   std::int32_t padding) {
  detail::check_types("cross_entropy", {&logits});
  detail::check_f32("cross_entropy", losses);
  detail::check_f32("cross_entropy", lse);
  if (e.rows == 0) {
    return;
  }
  detail::visit_views({&logits}, e.width, [&]<class X>(detail::Tag<X>) {
    detail::launch("cross_entropy",
                   stream,
                   detail::grid_of(e.rows),
                   dim3(detail::loss_threads),
                   0,
                   detail::cross_entropy_kernel<X>,
                   e,
                   detail::elements<float>(losses),
                   detail::elements<float>(lse),
                   X(logits),
                   detail::elements<std::int32_t const>(labels),
                   padding);
  });
}

/// Enqueues dlogits = scale (exp(logits - lse) - onehot(label)), or 0 where the label is
/// \p padding or outside the vocabulary (its loss is NaN already). dlogits may be logits. Otherwise
/// as \ref cross_entropy.
template <detail::OnUse = detail::OnUse::compiled>
void cross_entropy_backward(::cuda::stream_ref stream,
                            nn::RowExtents e,
                            DeviceTensor const& dlogits,
                            DeviceTensor const& logits,
                            DeviceTensor const& lse,
                            DeviceTensor const& labels,
                            std::int32_t padding,
                            double scale) {
  detail::check_types("cross_entropy_backward", {&dlogits, &logits});
  detail::check_f32("cross_entropy_backward", lse);
  if (e.rows == 0 || e.width == 0) {
    return;
  }
  detail::visit_views(
      {&dlogits}, {&logits}, e.width, [&]<class D, class X>(detail::Tag<D>, detail::Tag<X>) {
        constexpr std::int64_t packs = 4;  // of one lane
        auto const blocks_per_row =
            detail::divide_up(e.width, packs * detail::flat_threads * D::size);
        detail::launch("cross_entropy_backward",
                       stream,
                       detail::grid_of(e.rows * blocks_per_row),
                       dim3(detail::flat_threads),
                       0,
                       detail::cross_entropy_backward_kernel<D, X>,
                       e,
                       blocks_per_row,
                       D(dlogits),
                       X(logits),
                       detail::elements<float const>(lse),
                       detail::elements<std::int32_t const>(labels),
                       padding,
                       static_cast<float>(scale));
      });
}

}  // namespace roundpipe::cu
