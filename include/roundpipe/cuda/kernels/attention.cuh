// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief Causal grouped-query attention by tiles of queries and keys in shared memory, without
/// tensor cores: for types and heads that cuDNN does not compute, and where it is not there.
///
/// Forward: online softmax (Dao et al. 2022, algorithm 1), a block a tile of queries. Backward: two
/// passes, one a tile of queries for their gradient, one a tile of keys for that of keys and
/// values, which walks over the query heads of its group in order; no sum's order is left to
/// chance. All arithmetic is in f32, probabilities included.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/half.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/attention_plan.hpp>
#include <roundpipe/cuda/error.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace roundpipe::cu::detail {

/// The extents of attention as kernels take them. Rows and heads of queries are [rows, length,
/// heads, head_dim], and likewise with kv_heads for keys and values.
struct AttentionExtents {
  std::int64_t length;
  std::int64_t sequences;  ///< Rows times heads: of queries, or of keys in the pass over keys.
  int heads;
  int kv_heads;
  int head_dim;
  float scale;
};

/// A block's 16 by 16 threads over tiles of \p Tile queries or keys, with heads of up to \p Dim
/// elements. Thread (x, y) holds the elements (y + 16 i, x + 16 j) of a tile of scores, and
/// (y + 16 i, 4 x + 64 j ...) of a tile of vectors.
template <int Dim, int Tile>
struct AttentionTile {
  static constexpr int side = 16;
  static constexpr int threads = side * side;
  static constexpr int each = Tile / side;      ///< A thread's rows, and columns of scores.
  static constexpr int quads = Dim / 4 / side;  ///< Its groups of four columns of vectors.
  static constexpr int stride = Dim + 4;        ///< Of vectors: no two rows begin in one bank.
  static constexpr int score_stride = Tile + 4;
  static constexpr int vector_floats = Tile * stride;
  static constexpr int score_floats = Tile * score_stride;

  using Scores = float[each][each];
  using Vectors = float4[each][quads];

  [[nodiscard]] __device__ static int x() { return static_cast<int>(threadIdx.x) % side; }
  [[nodiscard]] __device__ static int y() { return static_cast<int>(threadIdx.x) / side; }

  /// Brings \p Tile vectors from \p first on, \p step elements apart, to \p tile; zeros where there
  /// are none.
  template <class E>
  __device__ static void load(float* tile,
                              E const* from,
                              std::int64_t step,
                              std::int64_t first,
                              AttentionExtents const& e) {
    for (int i = static_cast<int>(threadIdx.x); i < Tile * Dim; i += threads) {
      int const row = i / Dim;
      int const column = i % Dim;
      bool const there = first + row < e.length && column < e.head_dim;
      tile[row * stride + column] = there ? read_one(from + (first + row) * step + column) : 0.F;
    }
  }

  /// s = a bᵀ.
  __device__ static void multiply(Scores& s, float const* a, float const* b) {
#pragma unroll
    for (int i = 0; i < each; ++i) {
#pragma unroll
      for (int j = 0; j < each; ++j) {
        s[i][j] = 0;
      }
    }
#pragma unroll 4
    for (int column = 0; column < Dim; column += 4) {
      float4 rows[each];
#pragma unroll
      for (int i = 0; i < each; ++i) {
        rows[i] = *reinterpret_cast<float4 const*>(a + (y() + side * i) * stride + column);
      }
#pragma unroll
      for (int j = 0; j < each; ++j) {
        auto const other = *reinterpret_cast<float4 const*>(b + (x() + side * j) * stride + column);
#pragma unroll
        for (int i = 0; i < each; ++i) {
          s[i][j] += rows[i].x * other.x;
          s[i][j] += rows[i].y * other.y;
          s[i][j] += rows[i].z * other.z;
          s[i][j] += rows[i].w * other.w;
        }
      }
    }
  }

  __device__ static void write(float* tile, Scores const& s) {
#pragma unroll
    for (int i = 0; i < each; ++i) {
#pragma unroll
      for (int j = 0; j < each; ++j) {
        tile[(y() + side * i) * score_stride + x() + side * j] = s[i][j];
      }
    }
  }

  __device__ static void clear(Vectors& sum) {
#pragma unroll
    for (int i = 0; i < each; ++i) {
#pragma unroll
      for (int j = 0; j < quads; ++j) {
        sum[i][j] = make_float4(0, 0, 0, 0);
      }
    }
  }

  /// sum += scores vectors.
  __device__ static void accumulate(Vectors& sum, float const* scores, float const* vectors) {
    auto const add = [](float4& to, float factor, float4 const& v) {
      to.x += factor * v.x;
      to.y += factor * v.y;
      to.z += factor * v.z;
      to.w += factor * v.w;
    };
#pragma unroll 2
    for (int k = 0; k < Tile; k += 4) {
      float4 factors[each];
#pragma unroll
      for (int i = 0; i < each; ++i) {
        factors[i] = *reinterpret_cast<float4 const*>(scores + (y() + side * i) * score_stride + k);
      }
#pragma unroll
      for (int j = 0; j < quads; ++j) {
        auto const* const column = vectors + k * stride + 4 * x() + 4 * side * j;
        auto const v0 = *reinterpret_cast<float4 const*>(column);
        auto const v1 = *reinterpret_cast<float4 const*>(column + stride);
        auto const v2 = *reinterpret_cast<float4 const*>(column + 2 * stride);
        auto const v3 = *reinterpret_cast<float4 const*>(column + 3 * stride);
#pragma unroll
        for (int i = 0; i < each; ++i) {
          add(sum[i][j], factors[i].x, v0);
          add(sum[i][j], factors[i].y, v1);
          add(sum[i][j], factors[i].z, v2);
          add(sum[i][j], factors[i].w, v3);
        }
      }
    }
  }

  /// Rounds factor times row i of \p sum to \p to, for the rows and columns that exist.
  template <class E>
  __device__ static void store(E* to,
                               std::int64_t step,
                               std::int64_t first,
                               AttentionExtents const& e,
                               Vectors const& sum,
                               float const (&factor)[each]) {
#pragma unroll
    for (int i = 0; i < each; ++i) {
      auto const position = first + y() + side * i;
      if (position < e.length) {
#pragma unroll
        for (int j = 0; j < quads; ++j) {
          int const column = 4 * x() + 4 * side * j;
          auto* const place = to + position * step + column;
          float const values[4] = {sum[i][j].x, sum[i][j].y, sum[i][j].z, sum[i][j].w};
#pragma unroll
          for (int n = 0; n < 4; ++n) {
            if (column + n < e.head_dim) {
              write_one(place + n, factor[i] * values[n]);
            }
          }
        }
      }
    }
  }
};

/// Where a sequence's vectors begin, and how far they are apart.
struct AttentionPlace {
  std::int64_t offset;
  std::int64_t step;

  /// Of head \p head of \p heads in row \p row.
  __device__ AttentionPlace(AttentionExtents const& e, std::int64_t row, int head, int heads)
      : offset((row * e.length * heads + head) * e.head_dim),
        step(static_cast<std::int64_t>(heads) * e.head_dim) {}
};

/// Reduces over the 16 threads that share rows.
template <class F>
[[nodiscard]] __device__ float over_row(float value, F&& f) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) {
    value = f(value, __shfl_xor_sync(~0U, value, step));
  }
  return value;
}

/// A block a tile of queries, the last ones, which see the most keys, first.
template <class E, int Dim, int Tile>
__global__ void __launch_bounds__(256)
    attention_kernel(E* out, float* lse, E const* q, E const* k, E const* v, AttentionExtents e) {
  using T = AttentionTile<Dim, Tile>;
  extern __shared__ float4 memory[];
  auto* const queries = reinterpret_cast<float*>(memory);
  auto* const keys = queries + T::vector_floats;  // and then values
  auto* const weights = keys + T::vector_floats;

  auto const tiles = (e.length + Tile - 1) / Tile;
  auto const sequence = blockIdx.x % e.sequences;
  auto const first = (tiles - 1 - blockIdx.x / e.sequences) * Tile;
  auto const row = sequence / e.heads;
  int const head = static_cast<int>(sequence % e.heads);
  AttentionPlace const mine(e, row, head, e.heads);
  AttentionPlace const theirs(e, row, head / (e.heads / e.kv_heads), e.kv_heads);

  T::load(queries, q + mine.offset, mine.step, first, e);
  float largest[T::each];
  float total[T::each];  // this thread's columns of each row
  typename T::Vectors sum;
  T::clear(sum);
#pragma unroll
  for (int i = 0; i < T::each; ++i) {
    largest[i] = -::cuda::std::numeric_limits<float>::infinity();
    total[i] = 0;
  }
  for (std::int64_t start = 0; start < e.length && start < first + Tile; start += Tile) {
    __syncthreads();
    T::load(keys, k + theirs.offset, theirs.step, start, e);
    __syncthreads();
    typename T::Scores s;
    T::multiply(s, queries, keys);
#pragma unroll
    for (int i = 0; i < T::each; ++i) {
      auto const query = first + T::y() + T::side * i;
      float most = largest[i];
#pragma unroll
      for (int j = 0; j < T::each; ++j) {
        bool const visible = start + T::x() + T::side * j <= query;
        s[i][j] = visible ? s[i][j] * e.scale : -::cuda::std::numeric_limits<float>::infinity();
        most = fmaxf(most, s[i][j]);
      }
      // Finite: key 0 is in the first tile, and all see it.
      most = over_row(most, [](float a, float b) { return fmaxf(a, b); });
      float const correction = expf(largest[i] - most);
      largest[i] = most;
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
    T::load(keys, v + theirs.offset, theirs.step, start, e);
    __syncthreads();
    T::accumulate(sum, weights, keys);
  }
#pragma unroll
  for (int i = 0; i < T::each; ++i) {
    total[i] = over_row(total[i], [](float a, float b) { return a + b; });
    auto const query = first + T::y() + T::side * i;
    if (T::x() == 0 && query < e.length) {
      lse[sequence * e.length + query] = largest[i] + logf(total[i]);
    }
    total[i] = 1 / total[i];
  }
  T::store(out + mine.offset, mine.step, first, e, sum, total);
}

/// A warp a query: the sum of the products of its output and the output's gradient.
template <class E>
__global__ void __launch_bounds__(256)
    attention_row_sums_kernel(float* row_sums, E const* dout, E const* out, AttentionExtents e) {
  auto const query = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (query >= e.sequences * e.length) {
    return;
  }
  auto const sequence = query / e.length;
  AttentionPlace const place(e, sequence / e.heads, static_cast<int>(sequence % e.heads), e.heads);
  auto const offset = place.offset + query % e.length * place.step;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < e.head_dim; i += 32) {
    sum += read_one(dout + offset + i) * read_one(out + offset + i);
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    sum += __shfl_xor_sync(~0U, sum, step);
  }
  if (threadIdx.x % 32 == 0) {
    row_sums[query] = sum;
  }
}

/// The queries' gradient, a block a tile of queries.
template <class E, int Dim, int Tile>
__global__ void __launch_bounds__(256) attention_dq_kernel(E* dq,
                                                           E const* dout,
                                                           E const* q,
                                                           E const* k,
                                                           E const* v,
                                                           float const* lse,
                                                           float const* row_sums,
                                                           AttentionExtents e) {
  using T = AttentionTile<Dim, Tile>;
  extern __shared__ float4 memory[];
  auto* const queries = reinterpret_cast<float*>(memory);
  auto* const gradients = queries + T::vector_floats;
  auto* const keys = gradients + T::vector_floats;
  auto* const values = keys + T::vector_floats;
  auto* const changes = values + T::vector_floats;

  auto const tiles = (e.length + Tile - 1) / Tile;
  auto const sequence = blockIdx.x % e.sequences;
  auto const first = (tiles - 1 - blockIdx.x / e.sequences) * Tile;
  auto const row = sequence / e.heads;
  int const head = static_cast<int>(sequence % e.heads);
  AttentionPlace const mine(e, row, head, e.heads);
  AttentionPlace const theirs(e, row, head / (e.heads / e.kv_heads), e.kv_heads);

  T::load(queries, q + mine.offset, mine.step, first, e);
  T::load(gradients, dout + mine.offset, mine.step, first, e);
  float log_sum[T::each];
  float row_sum[T::each];
  float factor[T::each];
  typename T::Vectors sum;
  T::clear(sum);
#pragma unroll
  for (int i = 0; i < T::each; ++i) {
    auto const query = first + T::y() + T::side * i;
    auto const at = sequence * e.length + query;
    log_sum[i] = query < e.length ? lse[at] : 0.F;
    row_sum[i] = query < e.length ? row_sums[at] : 0.F;
    factor[i] = e.scale;
  }
  for (std::int64_t start = 0; start < e.length && start < first + Tile; start += Tile) {
    __syncthreads();
    T::load(keys, k + theirs.offset, theirs.step, start, e);
    T::load(values, v + theirs.offset, theirs.step, start, e);
    __syncthreads();
    typename T::Scores s;
    typename T::Scores change;
    T::multiply(s, queries, keys);
    T::multiply(change, gradients, values);
#pragma unroll
    for (int i = 0; i < T::each; ++i) {
      auto const query = first + T::y() + T::side * i;
#pragma unroll
      for (int j = 0; j < T::each; ++j) {
        bool const visible = query < e.length && start + T::x() + T::side * j <= query;
        float const weight = visible ? expf(s[i][j] * e.scale - log_sum[i]) : 0.F;
        change[i][j] = weight * (change[i][j] - row_sum[i]);
      }
    }
    T::write(changes, change);
    __syncthreads();
    T::accumulate(sum, changes, keys);
  }
  T::store(dq + mine.offset, mine.step, first, e, sum, factor);
}

/// The gradients of keys and values, a block a tile of keys, the first ones, which the most queries
/// see, first.
template <class E, int Dim, int Tile>
__global__ void __launch_bounds__(256) attention_dkv_kernel(E* dk,
                                                            E* dv,
                                                            E const* dout,
                                                            E const* q,
                                                            E const* k,
                                                            E const* v,
                                                            float const* lse,
                                                            float const* row_sums,
                                                            AttentionExtents e) {
  using T = AttentionTile<Dim, Tile>;
  extern __shared__ float4 memory[];
  auto* const queries = reinterpret_cast<float*>(memory);
  auto* const gradients = queries + T::vector_floats;
  auto* const keys = gradients + T::vector_floats;
  auto* const values = keys + T::vector_floats;
  auto* const weights = values + T::vector_floats;  // and then changes

  auto const sequence = blockIdx.x % e.sequences;
  auto const first = blockIdx.x / e.sequences * Tile;
  auto const row = sequence / e.kv_heads;
  int const kv_head = static_cast<int>(sequence % e.kv_heads);
  int const group = e.heads / e.kv_heads;
  AttentionPlace const mine(e, row, kv_head, e.kv_heads);

  T::load(keys, k + mine.offset, mine.step, first, e);
  T::load(values, v + mine.offset, mine.step, first, e);
  typename T::Vectors key_sum;
  typename T::Vectors value_sum;
  T::clear(key_sum);
  T::clear(value_sum);
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    AttentionPlace const theirs(e, row, head, e.heads);
    auto const statistics = (row * e.heads + head) * e.length;
    for (std::int64_t start = first; start < e.length; start += Tile) {
      __syncthreads();
      T::load(queries, q + theirs.offset, theirs.step, start, e);
      T::load(gradients, dout + theirs.offset, theirs.step, start, e);
      __syncthreads();
      typename T::Scores s;
      typename T::Scores change;
      T::multiply(s, keys, queries);
      T::multiply(change, values, gradients);
#pragma unroll
      for (int j = 0; j < T::each; ++j) {
        auto const query = start + T::x() + T::side * j;
        bool const there = query < e.length;
        float const log_sum = there ? lse[statistics + query] : 0.F;
        float const row_sum = there ? row_sums[statistics + query] : 0.F;
#pragma unroll
        for (int i = 0; i < T::each; ++i) {
          bool const visible = there && first + T::y() + T::side * i <= query;
          s[i][j] = visible ? expf(s[i][j] * e.scale - log_sum) : 0.F;
          change[i][j] = s[i][j] * (change[i][j] - row_sum);
        }
      }
      T::write(weights, s);
      __syncthreads();
      T::accumulate(value_sum, weights, gradients);
      __syncthreads();
      T::write(weights, change);
      __syncthreads();
      T::accumulate(key_sum, weights, queries);
    }
  }
  float one[T::each];
  float scale[T::each];
#pragma unroll
  for (int i = 0; i < T::each; ++i) {
    one[i] = 1;
    scale[i] = e.scale;
  }
  T::store(dk + mine.offset, mine.step, first, e, key_sum, scale);
  T::store(dv + mine.offset, mine.step, first, e, value_sum, one);
}

/// Enqueues \p kernel, which may take more shared memory than kernels do by default: at most
/// 87 KiB, which every device of compute capability 8.0 and above has.
template <class... Parameters, class... Arguments>
void launch_tiles(char const* operation,
                  ::cuda::stream_ref stream,
                  std::int64_t blocks,
                  int floats,
                  void (*kernel)(Parameters...),
                  Arguments const&... arguments) {
  auto const bytes = static_cast<int>(static_cast<std::size_t>(floats) * sizeof(float));
  require(blocks <= std::numeric_limits<std::int32_t>::max(),
          Errc::unsupported,
          "attention over more tiles than a grid has blocks");
  check(::cudaFuncSetAttribute(reinterpret_cast<void const*>(kernel),
                               ::cudaFuncAttributeMaxDynamicSharedMemorySize,
                               bytes),
        "cudaFuncSetAttribute");
  launch(operation,
         stream,
         static_cast<unsigned>(blocks),
         dim3(256),
         static_cast<std::size_t>(bytes),
         kernel,
         arguments...);
}

[[nodiscard]] inline AttentionExtents attention_extents(AttentionShape const& s) {
  return {s.length,
          s.rows * s.heads,
          static_cast<int>(s.heads),
          static_cast<int>(s.kv_heads),
          static_cast<int>(s.head_dim),
          static_cast<float>(1 / std::sqrt(static_cast<double>(s.head_dim)))};
}

/// A number that templates take.
template <int N>
struct Number {
  static constexpr int value = N;
};

/// Calls \p f(element, Number of the smallest head that has room).
template <class F>
void visit_attention(AttentionShape const& s, F&& f) {
  auto const with = [&](auto element) {
    if (s.head_dim <= 64) {
      f(element, Number<64>{});
    } else if (s.head_dim <= 128) {
      f(element, Number<128>{});
    } else {
      f(element, Number<256>{});
    }
  };
  if (s.dtype == DType::bf16) {
    with(BFloat16{});
  } else if (s.dtype == DType::f16) {
    with(Float16{});
  } else {
    with(float{});
  }
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
    constexpr int tile = head <= 128 ? 64 : 32;
    using T = AttentionTile<head, tile>;
    launch_tiles("attention",
                 stream,
                 divide_up(s.length, tile) * s.rows * s.heads,
                 2 * T::vector_floats + T::score_floats,
                 attention_kernel<E, head, tile>,
                 out.as<E>().device_pointer(),
                 lse.as<float>().device_pointer(),
                 q.as<E>().device_pointer(),
                 k.as<E>().device_pointer(),
                 v.as<E>().device_pointer(),
                 attention_extents(s));
  });
}

/// Its gradients. \p scratch has \ref row_sums_bytes.
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
    constexpr int tile = head <= 64 ? 64 : head <= 128 ? 32 : 16;
    using T = AttentionTile<head, tile>;
    constexpr int floats = 4 * T::vector_floats + T::score_floats;
    constexpr int queries_per_block = 8;
    auto const e = attention_extents(s);
    auto* const row_sums = reinterpret_cast<float*>(scratch.device_pointer());
    auto const* const log_sums = lse.as<float>().device_pointer();
    auto const pointer = [](DeviceTensor const& t) { return t.as<E>().device_pointer(); };
    launch_tiles("attention_backward",
                 stream,
                 divide_up(e.sequences * s.length, queries_per_block),
                 0,
                 attention_row_sums_kernel<E>,
                 row_sums,
                 pointer(dout),
                 pointer(out),
                 e);
    launch_tiles("attention_backward",
                 stream,
                 divide_up(s.length, tile) * e.sequences,
                 floats,
                 attention_dq_kernel<E, head, tile>,
                 pointer(dq),
                 pointer(dout),
                 pointer(q),
                 pointer(k),
                 pointer(v),
                 log_sums,
                 row_sums,
                 e);
    auto of_keys = e;
    of_keys.sequences = s.rows * s.kv_heads;
    launch_tiles("attention_backward",
                 stream,
                 divide_up(s.length, tile) * of_keys.sequences,
                 floats,
                 attention_dkv_kernel<E, head, tile>,
                 pointer(dk),
                 pointer(dv),
                 pointer(dout),
                 pointer(q),
                 pointer(k),
                 pointer(v),
                 log_sums,
                 row_sums,
                 of_keys);
  });
}

}  // namespace roundpipe::cu::detail
