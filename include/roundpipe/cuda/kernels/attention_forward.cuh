// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief Causal grouped-query attention by our own kernel, for types and heads that cuDNN does not
/// compute and for programs without cuDNN: online softmax (Dao et al. 2022, algorithm 1) over tiles
/// of keys. Each block computes a tile of queries. All arithmetic is in f32, probabilities
/// included.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/attention_launch.cuh>
#include <roundpipe/cuda/kernels/attention_tiles.cuh>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/teams.cuh>

#include <cuda/std/limits>
#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace roundpipe::cu::detail {

/// The maximum over each group of \p lanes neighbours, a power of two; every lane of a group gets
/// it. All lanes of the warp must call.
[[nodiscard]] __device__ inline float largest_over_lanes(float value, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0U, value, step));
  }
  return value;
}

/// Each block computes a tile \p T of queries.
template <class E, class T>
__global__ void __launch_bounds__(attention_threads)
    attention_kernel(E* out, float* lse, E const* q, E const* k, E const* v, AttentionExtents e) {
  constexpr auto infinity = ::cuda::std::numeric_limits<float>::infinity();
  extern __shared__ float4 memory[];
  auto* const queries = reinterpret_cast<float*>(memory);
  auto* const keys = queries + T::vector_floats;  // and then values
  auto* const weights = keys + T::vector_floats;

  QueryTile<T> const mine(e);
  T::load(queries, q, mine.queries, mine.first, e);
  float largest[T::each];
  float total[T::each];  // this thread's columns of each row
  typename T::Vectors sum;
  T::clear(sum);
#pragma unroll
  for (int i = 0; i < T::each; ++i) {
    largest[i] = -infinity;
    total[i] = 0;
  }
  mine.for_each_key_tile(e, [&](std::int64_t start) {
    __syncthreads();
    T::load(keys, k, mine.keys, start, e);
    __syncthreads();
    typename T::Scores s;
    T::multiply(s, queries, keys);
#pragma unroll
    for (int i = 0; i < T::each; ++i) {
      float const before = largest[i];
      float most = before;
#pragma unroll
      for (int j = 0; j < T::each; ++j) {
        bool const visible = e.visible(mine.query(i), T::column_from(start, j));
        s[i][j] = visible ? s[i][j] * e.scale : -infinity;
        most = fmaxf(most, s[i][j]);
      }
      most = largest_over_lanes(most, T::side);
      largest[i] = most;
      // A query's window may begin in a later tile: then there is no largest score yet.
      most = most == -infinity ? 0.F : most;
      float const correction = expf(before - most);
      total[i] *= correction;
#pragma unroll
      for (int j = 0; j < T::each; ++j) {
        s[i][j] = expf(s[i][j] - most);
        total[i] += s[i][j];
      }
#pragma unroll
      for (int j = 0; j < T::quads; ++j) {
        sum[i][j].x *= correction;
        sum[i][j].y *= correction;
        sum[i][j].z *= correction;
        sum[i][j].w *= correction;
      }
    }
    T::write(weights, s);
    __syncthreads();
    T::load(keys, v, mine.keys, start, e);
    __syncthreads();
    T::accumulate(sum, weights, keys);
  });
#pragma unroll
  for (int i = 0; i < T::each; ++i) {
    total[i] = sum_over_lanes(total[i], T::side);
    auto const query = mine.query(i);
    if (T::x() == 0 && query < e.length) {
      lse[mine.sequence * e.length + query] = largest[i] + logf(total[i]);
    }
    total[i] = 1 / total[i];
  }
  T::store(out, mine.queries, mine.first, e, sum, total);
}

/// The attention by our own kernel. \pre As \ref attention, checked.
inline void attention_by_tiles(::cuda::stream_ref stream,
                               AttentionShape const& s,
                               DeviceTensor const& out,
                               DeviceTensor const& lse,
                               DeviceTensor const& q,
                               DeviceTensor const& k,
                               DeviceTensor const& v) {
  visit_attention(s, [&](auto element, auto dim) {
    using E = decltype(element);
    constexpr int head = decltype(dim)::value;
    using T = AttentionTile<head, head <= 128 ? 64 : 32>;
    auto const e = attention_extents(s);
    launch_tiles("attention",
                 stream,
                 divide_up(s.length, T::size) * e.sequences,
                 2 * T::vector_floats + T::score_floats,
                 attention_kernel<E, T>,
                 elements<E>(out).data(),
                 elements<float>(lse).data(),
                 elements<E>(q).data(),
                 elements<E>(k).data(),
                 elements<E>(v).data(),
                 e);
  });
}

}  // namespace roundpipe::cu::detail
