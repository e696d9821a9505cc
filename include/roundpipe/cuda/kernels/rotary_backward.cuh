// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief The gradient of rotary position embedding on the GPU, and of the norm fused with it.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>
#include <roundpipe/cuda/kernels/partial_sums.cuh>
#include <roundpipe/cuda/kernels/rotary_plan.cuh>
#include <roundpipe/cuda/kernels/teams.cuh>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

namespace roundpipe::cu {

namespace detail {

inline constexpr int rotary_gradient_blocks = 3;  ///< Of a multiprocessor, by their registers.

/// The gradient of rotary_kernel; x, gain and partials count only where gain is present.
template <class X, class G>
__global__ void __launch_bounds__(rotary_threads, rotary_gradient_blocks)
    rotary_backward_kernel(RotaryPlan plan, X dx, Partials partials, X dy, X x, G gain) {
  extern __shared__ __align__(16) float turns[];
  constexpr int held = HeadPacks<X>::held;
  auto const width = static_cast<float>(2 * plan.half);
  bool const sums = partials.data_handle() != nullptr;
  HeadPacks<G> gains;
  if (gain.present()) {
    gains.load(gain, 0, plan, static_cast<int>(threadIdx.x) % plan.lanes);
  }
  Pack<X::size> dgain[2 * held] = {};
  for_each_head(turns, plan, [&](std::int64_t begin, float const* turn, int lane, bool active) {
    HeadPacks<X> gradients;
    HeadPacks<X> values;
    gradients.load(dy, begin, plan, lane, active);
    if (gain.present()) {
      values.load(x, begin, plan, lane, active);
    }
    Pack<X::size> turned[2 * held];
    float squares = 0;
    float product = 0;  // of the turned gradient, the gain and x
#pragma unroll
    for (int k = 0; k < held; ++k) {
      auto const at = (lane + k * plan.lanes) * X::size;
      auto const count = count_at<X>(at, plan.half);
      auto& a = turned[2 * k];
      auto& b = turned[2 * k + 1];
      a = X::widen(gradients.first[k]);
      b = X::widen(gradients.second[k]);
      Turn<X> const t(turn, at, count, plan);
#pragma unroll
      for (int i = 0; i < X::size; ++i) {
        auto const v = a[i];
        a[i] = fmaf(v, t.cosine[i], b[i] * t.sine[i]);
        b[i] = fmaf(b[i], t.cosine[i], -(v * t.sine[i]));
      }
      if (gain.present()) {
        auto const v = X::widen(values.first[k]);
        auto const w = X::widen(values.second[k]);
        auto const g = G::widen(gains.first[k]);
        auto const h = G::widen(gains.second[k]);
#pragma unroll
        for (int i = 0; i < X::size; ++i) {
          squares = fmaf(v[i], v[i], fmaf(w[i], w[i], squares));
          product = fmaf(a[i] * g[i], v[i], fmaf(b[i] * h[i], w[i], product));
        }
      }
    }
    if (gain.present()) {
      squares = sum_over_lanes(squares, plan.lanes);
      product = sum_over_lanes(product, plan.lanes);
      float const r = rsqrtf(squares / width + plan.epsilon);
      float const projection = product * r * r * r / width;
#pragma unroll
      for (int k = 0; k < held; ++k) {
        auto const at = (lane + k * plan.lanes) * X::size;
        auto const count = count_at<X>(at, plan.half);
        auto const v = X::widen(values.first[k]);
        auto const w = X::widen(values.second[k]);
        auto const g = G::widen(gains.first[k]);
        auto const h = G::widen(gains.second[k]);
        auto& a = turned[2 * k];
        auto& b = turned[2 * k + 1];
#pragma unroll
        for (int i = 0; i < X::size; ++i) {
          if (sums) {
            dgain[2 * k][i] = fmaf(a[i] * v[i], r, dgain[2 * k][i]);
            dgain[2 * k + 1][i] = fmaf(b[i] * w[i], r, dgain[2 * k + 1][i]);
          }
          a[i] = fmaf(a[i] * g[i], r, -(v[i] * projection));
          b[i] = fmaf(b[i] * h[i], r, -(w[i] * projection));
        }
      }
    }
#pragma unroll
    for (int k = 0; k < held; ++k) {
      auto const at = (lane + k * plan.lanes) * X::size;
      if (auto const count = active ? count_at<X>(at, plan.half) : 0; count > 0) {
        dx.store(begin + at, turned[2 * k], count);
        dx.store(begin + plan.half + at, turned[2 * k + 1], count);
      }
    }
  });
  if (!sums) {
    return;
  }
  // The teams of a warp add their parts by shuffles, then the warps add theirs in order, in shared
  // memory of [warps, width].
  __syncthreads();
  auto* const warp_sums = turns;
  int const lane = static_cast<int>(threadIdx.x) % warp_lanes;
  int const warp = static_cast<int>(threadIdx.x) / warp_lanes;
#pragma unroll
  for (int k = 0; k < 2 * held; ++k) {
#pragma unroll
    for (int i = 0; i < X::size; ++i) {
      auto sum = dgain[k][i];
      for (int step = plan.lanes; step < warp_lanes; step *= 2) {
        sum += __shfl_xor_sync(~0U, sum, step);
      }
      auto const at = (lane + k / 2 * plan.lanes) * X::size + i;
      if (lane < plan.lanes && at < plan.half) {
        warp_sums[(warp * 2 + k % 2) * plan.half + at] = sum;
      }
    }
  }
  __syncthreads();
  for (int at = static_cast<int>(threadIdx.x); at < 2 * plan.half; at += rotary_threads) {
    float sum = 0;
    for (int i = 0; i < rotary_threads / warp_lanes; ++i) {
      sum += warp_sums[i * 2 * plan.half + at];
    }
    partials(blockIdx.x, at) = sum;
  }
}

}  // namespace detail

/// Enqueues the gradient of rotary(). dx may be dy. Only where \p gain is present, the kernel reads
/// x and adds the gain's gradient to dgain, which is optional and of f32. Tensors and \p scratch
/// must live until the work has run; \p scratch holds detail::partials_bytes() of the heads of all
/// positions.
/// \throws Error (unsupported) as rotary(), (invalid_argument) for less scratch.
template <detail::OnUse = detail::OnUse::compiled>
void rotary_backward(::cuda::stream_ref stream,
                     DeviceBytes scratch,
                     DeviceTensor const& dx,
                     DeviceTensor const& dgain,
                     DeviceTensor const& dy,
                     DeviceTensor const& x,
                     DeviceTensor const& gain,
                     RotaryOptions const& options) {
  auto const& value = gain.present() ? x : absent;
  auto const& sum = gain.present() ? dgain : absent;
  detail::check_types("rotary_backward", {&dx, &sum, &dy, &value, &gain});
  detail::check_f32("rotary_backward", sum);
  if (dy.size() == 0) {
    return;
  }
  auto const half = dy.shape()[3] / 2;
  detail::Partials partials;
  detail::visit_views(
      {&dy, &dx, &value}, {&gain}, half, [&]<class X, class G>(detail::Tag<X>, detail::Tag<G>) {
        auto const plan = detail::rotary_plan<X>("rotary_backward", dy.shape(), options);
        auto const blocks =
            sum.present()
                ? std::min(plan.runs, detail::most_partials(detail::rotary_gradient_blocks))
                : plan.runs;
        if (sum.present()) {
          partials = detail::partials_in(scratch, blocks, 2 * half);
        }
        detail::launch("rotary_backward",
                       stream,
                       detail::grid_of(blocks),
                       dim3(detail::rotary_threads),
                       detail::rotary_shared_bytes(plan),
                       detail::rotary_backward_kernel<X, G>,
                       plan,
                       X(dx),
                       partials,
                       X(dy),
                       X(value),
                       G(gain));
      });
  if (sum.present()) {
    detail::add_partials("rotary_backward", stream, sum, partials);
  }
}

}  // namespace roundpipe::cu
