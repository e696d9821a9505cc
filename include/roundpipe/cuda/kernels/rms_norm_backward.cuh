// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief The gradients of root-mean-square norms on the GPU.

#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>
#include <roundpipe/cuda/kernels/partial_sums.cuh>
#include <roundpipe/cuda/kernels/teams.cuh>
#include <roundpipe/nn/op_checks.hpp>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace roundpipe::cu {

namespace detail {

/// The most lanes of a row, and how many of its packs each holds in registers. The kernel's
/// registers let 1024 threads run on a multiprocessor.
inline constexpr int norm_gradient_lanes = 1024;
inline constexpr int norm_gradient_packs = 2;

/// Where dx is present, dx = the gradient + c. Where partials are, each block writes its part of
/// the gain's gradient to them. Lanes keep their columns of that part in registers, and what does
/// not fit there in \p partials. The teams of a block add their parts in dynamic shared memory of
/// [teams, width] floats.
template <class X, class G>
__global__ void __launch_bounds__(norm_gradient_lanes) rms_norm_backward_kernel(
    nn::RowExtents e, X dx, Partials partials, X dy, X x, G gain, X c, float epsilon) {
  constexpr int held = norm_gradient_packs;
  __shared__ TeamSum::Slots slots[2];
  extern __shared__ __align__(16) float team_sums[];
  bool const sums = partials.data_handle() != nullptr;
  auto const width = static_cast<float>(e.width);
  std::int64_t const step = blockDim.x * X::size;
  std::int64_t const first = threadIdx.x * X::size;
  std::int64_t const rows_apart = std::int64_t{gridDim.x} * blockDim.y;
  auto const row_0 = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  Pack<X::size> dgain[held] = {};
  int parity = 0;
  for (auto row = row_0; row < e.rows; row += rows_apart, parity ^= 1) {
    auto const begin = row * e.width;
    typename X::Raw gradients[held];
    typename X::Raw values[held];
    float2 both = make_float2(0, 0);  // the sums of x² and of dy gain x
    auto const add = [&](std::int64_t at, Pack<X::size> const& d, Pack<X::size> const& v) {
      auto const g = load_pack(gain, at, count_at<X>(at, e.width));
#pragma unroll
      for (int i = 0; i < X::size; ++i) {
        both.x = fmaf(v[i], v[i], both.x);
        both.y = fmaf(d[i] * g[i], v[i], both.y);
      }
    };
#pragma unroll
    for (int k = 0; k < held; ++k) {
      if (auto const at = first + k * step; at < e.width) {
        gradients[k] = dy.load(begin + at, count_at<X>(at, e.width));
        values[k] = x.load(begin + at, count_at<X>(at, e.width));
      }
    }
#pragma unroll
    for (int k = 0; k < held; ++k) {
      if (auto const at = first + k * step; at < e.width) {
        add(at, X::widen(gradients[k]), X::widen(values[k]));
      }
    }
    for (auto at = first + held * step; at < e.width; at += step) {
      auto const count = count_at<X>(at, e.width);
      add(at, load_pack(dy, begin + at, count), load_pack(x, begin + at, count));
    }
    both = TeamSum::of(both, slots[parity]);
    float const r = rsqrtf(both.x / width + epsilon);
    float const projection = both.y * r * r * r / width;
    auto const finish = [&](std::int64_t at, Pack<X::size> const& d, Pack<X::size> const& v) {
      auto const count = count_at<X>(at, e.width);
      if (!dx.present()) {
        return;
      }
      auto const g = load_pack(gain, at, count);
      auto result = c.present() ? load_pack(c, begin + at, count) : Pack<X::size>{};
#pragma unroll
      for (int i = 0; i < X::size; ++i) {
        result[i] += fmaf(d[i] * g[i], r, -(v[i] * projection));
      }
      dx.store(begin + at, result, count);
    };
#pragma unroll
    for (int k = 0; k < held; ++k) {
      if (auto const at = first + k * step; at < e.width) {
        auto const d = X::widen(gradients[k]);
        auto const v = X::widen(values[k]);
        if (sums) {
#pragma unroll
          for (int i = 0; i < X::size; ++i) {
            dgain[k][i] = fmaf(d[i] * v[i], r, dgain[k][i]);
          }
        }
        finish(at, d, v);
      }
    }
    for (auto at = first + held * step; at < e.width; at += step) {
      auto const count = count_at<X>(at, e.width);
      auto const d = load_pack(dy, begin + at, count);
      auto const v = load_pack(x, begin + at, count);
      if (sums) {
        for (int i = 0; i < count; ++i) {
          auto& sum = partials(blockIdx.x, at + i);
          sum = fmaf(d[i] * v[i], r, row == row_0 ? 0.0F : sum);
        }
      }
      finish(at, d, v);
    }
  }
  if (!sums) {
    return;
  }
  bool const alone = blockDim.y == 1;
  auto* const to = alone ? &partials(blockIdx.x, 0) : team_sums + threadIdx.y * e.width;
#pragma unroll
  for (int k = 0; k < held; ++k) {
    auto const at = first + k * step;
    if constexpr (X::whole) {
      if (at < e.width) {
#pragma unroll
        for (int i = 0; i < X::size; i += 4) {
          *reinterpret_cast<float4*>(to + at + i) =
              make_float4(dgain[k][i], dgain[k][i + 1], dgain[k][i + 2], dgain[k][i + 3]);
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < X::size; ++i) {
        if (at + i < e.width) {
          to[at + i] = dgain[k][i];
        }
      }
    }
  }
  if (alone) {
    return;
  }
  __syncthreads();
  for (std::int64_t at = threadIdx.y * blockDim.x + threadIdx.x; at < e.width;
       at += blockDim.x * blockDim.y) {
    float sum = 0;
    for (unsigned team = 0; team < blockDim.y; ++team) {
      sum += team_sums[team * e.width + at];
    }
    partials(blockIdx.x, at) = sum;
  }
}

}  // namespace detail

/// Enqueues dx = gradient + c, dgain += its sum over vectors; dx, dgain and c are optional, dgain
/// is of f32, and dx may be dy or c. Tensors and \p scratch must live until the work has run, and
/// \p scratch holds detail::partials_bytes(). Does not synchronize.
/// \throws Error (unsupported) for other types, (invalid_argument) for less scratch.
template <detail::OnUse = detail::OnUse::compiled>
void rms_norm_backward(::cuda::stream_ref stream,
                       DeviceBytes scratch,
                       nn::RowExtents e,
                       DeviceTensor const& dx,
                       DeviceTensor const& dgain,
                       DeviceTensor const& dy,
                       DeviceTensor const& x,
                       DeviceTensor const& gain,
                       DeviceTensor const& c,
                       double epsilon) {
  detail::check_types("rms_norm_backward", {&dx, &dgain, &dy, &x, &gain, &c});
  detail::check_f32("rms_norm_backward", dgain);
  if (e.rows == 0 || (!dx.present() && !dgain.present())) {
    return;
  }
  detail::Partials partials;
  detail::visit_views(
      {&dy, &x, &dx, &c}, {&gain}, e.width, [&]<class X, class G>(detail::Tag<X>, detail::Tag<G>) {
        auto const teams = detail::teams_for(
            e.width, detail::norm_gradient_packs * X::size, detail::norm_gradient_lanes);
        auto const blocks = std::min(detail::divide_up(e.rows, teams.rows_per_block),
                                     detail::most_partials(1024 / (teams.block.x * teams.block.y)));
        if (dgain.present()) {
          partials = detail::partials_in(scratch, blocks, e.width);
        }
        auto const shared = teams.rows_per_block == 1 ? 0 : teams.rows_per_block * e.width;
        detail::launch("rms_norm_backward",
                       stream,
                       detail::grid_of(blocks),
                       teams.block,
                       static_cast<std::size_t>(shared) * sizeof(float),
                       detail::rms_norm_backward_kernel<X, G>,
                       e,
                       X(dx),
                       partials,
                       X(dy),
                       X(x),
                       G(gain),
                       X(c),
                       static_cast<float>(epsilon));
      });
  if (dgain.present()) {
    detail::add_partials("rms_norm_backward", stream, dgain, partials);
  }
}

}  // namespace roundpipe::cu
