// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief The gradients of causal grouped-query attention by our own kernels, in two passes: one
/// over tiles of queries for their gradient, one over tiles of keys for that of keys and values.
///
/// Both recompute probabilities from the log-sum-exp, with the formulas of Dao et al. 2022,
/// algorithm 4. The pass over keys takes the query heads of its group in order, so that no sum
/// depends on timing. All arithmetic is in f32, probabilities included.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/attention_launch.cuh>
#include <roundpipe/cuda/kernels/attention_tiles.cuh>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>
#include <roundpipe/cuda/kernels/teams.cuh>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace roundpipe::cu::detail {

/// For each query, one warp sums the products of its output and the output's gradient.
template <class E>
__global__ void __launch_bounds__(attention_threads)
    attention_row_sums_kernel(float* row_sums, E const* dout, E const* out, AttentionExtents e) {
  auto const query = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / warp_lanes;
  if (query >= e.sequences * e.length) {
    return;
  }
  auto const sequence = query / e.length;
  AttentionPlace const place(e, sequence / e.heads, static_cast<int>(sequence % e.heads), e.heads);
  auto const offset = place.offset + query % e.length * place.step;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x) % warp_lanes; i < e.head_dim; i += warp_lanes) {
    sum += read_one(dout + offset + i) * read_one(out + offset + i);
  }
  sum = sum_over_lanes(sum);
  if (threadIdx.x % warp_lanes == 0) {
    row_sums[query] = sum;
  }
}

/// A block's shared memory in either pass.
template <class T>
struct BackwardTiles {
  static constexpr int floats = 4 * T::vector_floats + T::score_floats;

  float* queries;
  float* gradients;
  float* keys;
  float* values;
  float* scores;

  __device__ explicit BackwardTiles(float4* memory)
      : queries(reinterpret_cast<float*>(memory)),
        gradients(queries + T::vector_floats),
        keys(gradients + T::vector_floats),
        values(keys + T::vector_floats),
        scores(values + T::vector_floats) {}

  template <class E>
  __device__ void load_queries(E const* q,
                               E const* dout,
                               AttentionPlace const& place,
                               std::int64_t first,
                               AttentionExtents const& e) const {
    T::load(queries, q, place, first, e);
    T::load(gradients, dout, place, first, e);
  }
  template <class E>
  __device__ void load_keys(E const* k,
                            E const* v,
                            AttentionPlace const& place,
                            std::int64_t first,
                            AttentionExtents const& e) const {
    T::load(keys, k, place, first, e);
    T::load(values, v, place, first, e);
  }
};

/// The queries' gradient; each block computes a tile \p T of queries.
template <class E, class T>
__global__ void __launch_bounds__(attention_threads) attention_dq_kernel(E* dq,
                                                                         E const* dout,
                                                                         E const* q,
                                                                         E const* k,
                                                                         E const* v,
                                                                         float const* lse,
                                                                         float const* row_sums,
                                                                         AttentionExtents e) {
  extern __shared__ float4 memory[];
  BackwardTiles<T> const tiles(memory);
  QueryTile<T> const mine(e);
  tiles.load_queries(q, dout, mine.queries, mine.first, e);
  float log_sum[T::each];
  float row_sum[T::each];
  float factor[T::each];
  typename T::Vectors sum;
  T::clear(sum);
#pragma unroll
  for (int i = 0; i < T::each; ++i) {
    auto const query = mine.query(i);
    auto const at = mine.sequence * e.length + query;
    log_sum[i] = query < e.length ? lse[at] : 0.F;
    row_sum[i] = query < e.length ? row_sums[at] : 0.F;
    factor[i] = e.scale;
  }
  mine.for_each_key_tile(e, [&](std::int64_t start) {
    __syncthreads();
    tiles.load_keys(k, v, mine.keys, start, e);
    __syncthreads();
    typename T::Scores s;
    typename T::Scores change;
    T::multiply(s, tiles.queries, tiles.keys);
    T::multiply(change, tiles.gradients, tiles.values);
    T::for_each_score([&](int i, int j) {
      auto const query = mine.query(i);
      bool const visible = query < e.length && e.visible(query, T::column_from(start, j));
      s[i][j] = visible ? expf(s[i][j] * e.scale - log_sum[i]) : 0.F;
      change[i][j] = s[i][j] * (change[i][j] - row_sum[i]);
    });
    T::write(tiles.scores, change);
    __syncthreads();
    T::accumulate(sum, tiles.scores, tiles.keys);
  });
  T::store(dq, mine.queries, mine.first, e, sum, factor);
}

/// The gradients of keys and values; each block computes a tile \p T of keys. The first tiles,
/// which the most queries see, come first.
template <class E, class T>
__global__ void __launch_bounds__(attention_threads) attention_dkv_kernel(E* dk,
                                                                          E* dv,
                                                                          E const* dout,
                                                                          E const* q,
                                                                          E const* k,
                                                                          E const* v,
                                                                          float const* lse,
                                                                          float const* row_sums,
                                                                          AttentionExtents e) {
  extern __shared__ float4 memory[];
  BackwardTiles<T> const tiles(memory);
  auto const sequence = blockIdx.x % e.sequences;
  auto const first = blockIdx.x / e.sequences * T::size;
  auto const row = sequence / e.kv_heads;
  int const kv_head = static_cast<int>(sequence % e.kv_heads);
  int const group = e.heads / e.kv_heads;
  AttentionPlace const mine(e, row, kv_head, e.kv_heads);
  auto const last = first + T::size - 1 + e.window;  // one behind the last query that sees a key

  tiles.load_keys(k, v, mine, first, e);
  typename T::Vectors key_sum;
  typename T::Vectors value_sum;
  T::clear(key_sum);
  T::clear(value_sum);
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    AttentionPlace const theirs(e, row, head, e.heads);
    auto const sums_at = (row * e.heads + head) * e.length;
    for (std::int64_t start = first; start < e.length && start < last; start += T::size) {
      __syncthreads();
      tiles.load_queries(q, dout, theirs, start, e);
      __syncthreads();
      typename T::Scores s;
      typename T::Scores change;
      T::multiply(s, tiles.keys, tiles.queries);
      T::multiply(change, tiles.values, tiles.gradients);
#pragma unroll
      for (int j = 0; j < T::each; ++j) {
        auto const query = T::column_from(start, j);
        bool const there = query < e.length;
        float const log_sum = there ? lse[sums_at + query] : 0.F;
        float const row_sum = there ? row_sums[sums_at + query] : 0.F;
#pragma unroll
        for (int i = 0; i < T::each; ++i) {
          bool const visible = there && e.visible(query, T::row_from(first, i));
          s[i][j] = visible ? expf(s[i][j] * e.scale - log_sum) : 0.F;
          change[i][j] = s[i][j] * (change[i][j] - row_sum);
        }
      }
      T::write(tiles.scores, s);
      __syncthreads();
      T::accumulate(value_sum, tiles.scores, tiles.gradients);
      __syncthreads();
      T::write(tiles.scores, change);
      __syncthreads();
      T::accumulate(key_sum, tiles.scores, tiles.queries);
    }
  }
  float one[T::each];
  float scale[T::each];
#pragma unroll
  for (int i = 0; i < T::each; ++i) {
    one[i] = 1;
    scale[i] = e.scale;
  }
  T::store(dk, mine, first, e, key_sum, scale);
  T::store(dv, mine, first, e, value_sum, one);
}

/// The gradients by our own kernels. \p scratch has \ref row_sums_bytes.
/// \pre As \ref attention_backward, checked.
inline void attention_backward_by_tiles(::cuda::stream_ref stream,
                                        DeviceBytes scratch,
                                        AttentionShape const& s,
                                        DeviceTensor const& dq,
                                        DeviceTensor const& dk,
                                        DeviceTensor const& dv,
                                        DeviceTensor const& dout,
                                        DeviceTensor const& q,
                                        DeviceTensor const& k,
                                        DeviceTensor const& v,
                                        DeviceTensor const& out,
                                        DeviceTensor const& lse) {
  visit_attention(s, [&](auto element, auto dim) {
    using E = decltype(element);
    constexpr int head = decltype(dim)::value;
    using T = AttentionTile<head, head <= 64 ? 64 : head <= 128 ? 32 : 16>;
    constexpr int queries_per_block = attention_threads / warp_lanes;
    auto const enqueue =
        [&](std::int64_t blocks, int floats, auto kernel, auto const&... arguments) {
          launch_tiles("attention_backward", stream, blocks, floats, kernel, arguments...);
        };
    auto const pointer = [](DeviceTensor const& t) { return elements<E>(t).data(); };
    auto const tiles = divide_up(s.length, T::size);
    auto const e = attention_extents(s);
    auto of_keys = e;
    of_keys.sequences = s.rows * s.kv_heads;
    auto* const row_sums = reinterpret_cast<float*>(scratch.device_pointer());
    enqueue(divide_up(e.sequences * s.length, queries_per_block),
            0,
            attention_row_sums_kernel<E>,
            row_sums,
            pointer(dout),
            pointer(out),
            e);
    auto const enqueue_pass = [&](auto kernel, AttentionExtents const& extents, auto... gradients) {
      enqueue(tiles * extents.sequences,
              BackwardTiles<T>::floats,
              kernel,
              gradients...,
              pointer(dout),
              pointer(q),
              pointer(k),
              pointer(v),
              elements<float>(lse).data(),
              row_sums,
              extents);
    };
    enqueue_pass(attention_dq_kernel<E, T>, e, pointer(dq));
    enqueue_pass(attention_dkv_kernel<E, T>, of_keys, pointer(dk), pointer(dv));
  });
}

}  // namespace roundpipe::cu::detail
