// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief Rotary position embedding on the GPU (Su et al. 2021, eq. 34), fused with the norm of
/// queries and keys that may precede it.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>
#include <roundpipe/cuda/kernels/rotary_plan.cuh>
#include <roundpipe/cuda/kernels/teams.cuh>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace roundpipe::cu {

namespace detail {

template <class X, class G>
__global__ void __launch_bounds__(rotary_threads, 4)
    rotary_kernel(RotaryPlan plan, X y, X x, G gain) {
  extern __shared__ __align__(16) float turns[];
  constexpr int held = HeadPacks<X>::held;
  HeadPacks<G> gains;
  if (gain.present()) {
    gains.load(gain, 0, plan, static_cast<int>(threadIdx.x) % plan.lanes);
  }
  for_each_head(turns, plan, [&](std::int64_t begin, float const* turn, int lane, bool active) {
    HeadPacks<X> packs;
    packs.load(x, begin, plan, lane, active);
    float r = 1;
    if (gain.present()) {
      float squares = 0;
#pragma unroll
      for (int k = 0; k < held; ++k) {
        auto const a = X::widen(packs.first[k]);
        auto const b = X::widen(packs.second[k]);
#pragma unroll
        for (int i = 0; i < X::size; ++i) {
          squares = fmaf(a[i], a[i], fmaf(b[i], b[i], squares));
        }
      }
      squares = sum_over_lanes(squares, plan.lanes);
      r = rsqrtf(squares / static_cast<float>(2 * plan.half) + plan.epsilon);
    }
#pragma unroll
    for (int k = 0; k < held; ++k) {
      auto const at = (lane + k * plan.lanes) * X::size;
      auto const count = active ? count_at<X>(at, plan.half) : 0;
      if (count > 0) {
        auto a = X::widen(packs.first[k]);
        auto b = X::widen(packs.second[k]);
        if (gain.present()) {
          auto const g = G::widen(gains.first[k]);
          auto const h = G::widen(gains.second[k]);
#pragma unroll
          for (int i = 0; i < X::size; ++i) {
            a[i] = a[i] * r * g[i];
            b[i] = b[i] * r * h[i];
          }
        }
        Turn<X> const t(turn, at, count, plan);
#pragma unroll
        for (int i = 0; i < X::size; ++i) {
          auto const v = a[i];
          a[i] = fmaf(v, t.cosine[i], -(b[i] * t.sine[i]));
          b[i] = fmaf(b[i], t.cosine[i], v * t.sine[i]);
        }
        y.store(begin + at, a, count);
        y.store(begin + plan.half + at, b, count);
      }
    }
  });
}

}  // namespace detail

/// Enqueues the rotation of \p x, of shape [rows, length, heads, head_dim], after a norm with
/// \p gain where that is present. y may be x. Tensors are of f32, bf16 or f16 and must live until
/// the work has run. Does not synchronize.
/// \throws Error (unsupported) for other types, or a head_dim above detail::rotary_most_width.
template <detail::OnUse = detail::OnUse::compiled>
void rotary(::cuda::stream_ref stream,
            DeviceTensor const& y,
            DeviceTensor const& x,
            DeviceTensor const& gain,
            RotaryOptions const& options) {
  detail::check_types("rotary", {&y, &x, &gain});
  if (x.size() == 0) {
    return;
  }
  auto const half = x.shape()[3] / 2;
  detail::visit_views(
      {&x, &y}, {&gain}, half, [&]<class X, class G>(detail::Tag<X>, detail::Tag<G>) {
        auto const plan = detail::rotary_plan<X>("rotary", x.shape(), options);
        detail::launch("rotary",
                       stream,
                       detail::grid_of(plan.runs),
                       dim3(detail::rotary_threads),
                       detail::rotary_shared_bytes(plan),
                       detail::rotary_kernel<X, G>,
                       plan,
                       X(y),
                       X(x),
                       G(gain));
      });
}

}  // namespace roundpipe::cu
