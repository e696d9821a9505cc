// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief Root-mean-square norms on the GPU (Zhang & Sennrich 2019, eq. 4).

#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>
#include <roundpipe/cuda/kernels/teams.cuh>
#include <roundpipe/nn/op_checks.hpp>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace roundpipe::cu {

namespace detail {

/// The most lanes of a row, and how many of its elements each holds in registers.
inline constexpr int norm_lanes = 512;
inline constexpr int norm_elements = 16;

/// y = gain n(x). A team reads what its registers hold of a row once, and the rest twice.
template <class X, class G>
__global__ void __launch_bounds__(norm_lanes, 2)
    rms_norm_kernel(nn::RowExtents e, X y, X x, G gain, float epsilon) {
  constexpr int held = norm_elements / X::size;
  __shared__ TeamSum::Slots slots[2];
  std::int64_t const step = blockDim.x * X::size;
  std::int64_t const first = threadIdx.x * X::size;
  std::int64_t const rows_apart = std::int64_t{gridDim.x} * blockDim.y;
  int parity = 0;
  for (auto row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < e.rows;
       row += rows_apart, parity ^= 1) {
    auto const begin = row * e.width;
    typename X::Raw packs[held];
    float squares = 0;
    auto const add = [&](Pack<X::size> const& v) {
#pragma unroll
      for (int i = 0; i < X::size; ++i) {
        squares = fmaf(v[i], v[i], squares);
      }
    };
#pragma unroll
    for (int k = 0; k < held; ++k) {
      if (auto const at = first + k * step; at < e.width) {
        packs[k] = x.load(begin + at, count_at<X>(at, e.width));
      }
    }
#pragma unroll
    for (int k = 0; k < held; ++k) {
      if (first + k * step < e.width) {
        add(X::widen(packs[k]));
      }
    }
    for (auto at = first + held * step; at < e.width; at += step) {
      add(load_pack(x, begin + at, count_at<X>(at, e.width)));
    }
    squares = TeamSum::of(make_float2(squares, 0), slots[parity]).x;
    float const r = rsqrtf(squares / static_cast<float>(e.width) + epsilon);
    auto const finish = [&](std::int64_t at, Pack<X::size> v) {
      auto const count = count_at<X>(at, e.width);
      auto const g = load_pack(gain, at, count);
#pragma unroll
      for (int i = 0; i < X::size; ++i) {
        v[i] = v[i] * r * g[i];
      }
      y.store(begin + at, v, count);
    };
#pragma unroll
    for (int k = 0; k < held; ++k) {
      if (auto const at = first + k * step; at < e.width) {
        finish(at, X::widen(packs[k]));
      }
    }
    for (auto at = first + held * step; at < e.width; at += step) {
      finish(at, load_pack(x, begin + at, count_at<X>(at, e.width)));
    }
  }
}

}  // namespace detail

/// Enqueues y = gain n(x) over \p e.rows vectors of \p e.width elements. Tensors are of f32, bf16
/// or f16 and must live until the work has run. Does not synchronize.
/// \throws Error (unsupported) for other types.
template <detail::OnUse = detail::OnUse::compiled>
void rms_norm(::cuda::stream_ref stream,
              nn::RowExtents e,
              DeviceTensor const& y,
              DeviceTensor const& x,
              DeviceTensor const& gain,
              double epsilon) {
  detail::check_types("rms_norm", {&y, &x, &gain});
  if (e.rows == 0) {
    return;
  }
  auto const teams = detail::teams_for(e.width, detail::norm_elements, detail::norm_lanes);
  detail::visit_views(
      {&y, &x}, {&gain}, e.width, [&]<class X, class G>(detail::Tag<X>, detail::Tag<G>) {
        detail::launch("rms_norm",
                       stream,
                       detail::grid_of(detail::divide_up(e.rows, teams.rows_per_block)),
                       teams.block,
                       0,
                       detail::rms_norm_kernel<X, G>,
                       e,
                       X(y),
                       X(x),
                       G(gain),
                       static_cast<float>(epsilon));
      });
}

}  // namespace roundpipe::cu
