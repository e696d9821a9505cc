// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief What the kernels of attention share: where a head's vectors lie, and products of tiles of
/// queries and keys in shared memory, without tensor cores, in f32.

#include <roundpipe/cuda/kernels/packs.cuh>

#include <cuda_runtime_api.h>

#include <cstdint>

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
  std::int64_t window;  ///< Keys that a query sees, at most the length.

  /// Whether query \p q sees key \p k.
  [[nodiscard]] __device__ bool visible(std::int64_t q, std::int64_t k) const {
    return k <= q && q - k < window;
  }
};

/// Where the vectors of a sequence begin, and how far apart they are.
struct AttentionPlace {
  std::int64_t offset;
  std::int64_t step;

  /// Of head \p head of \p heads in row \p row.
  __device__ AttentionPlace(AttentionExtents const& e, std::int64_t row, int head, int heads)
      : offset((row * e.length * heads + head) * e.head_dim),
        step(static_cast<std::int64_t>(heads) * e.head_dim) {}
};

/// The threads of a block.
inline constexpr int attention_threads = 256;

/// The 16 by 16 threads of a block over tiles of \p Tile queries or keys, with heads of up to \p
/// Dim elements. Thread (x, y) holds the elements (y + 16 i, x + 16 j) of a tile of scores, and (y
/// + 16 i, 4 x + 64 j ...) of a tile of vectors.
template <int Dim, int Tile>
struct AttentionTile {
  static constexpr int size = Tile;
  static constexpr int side = 16;
  static constexpr int each = Tile / side;      ///< A thread's rows, and columns of scores.
  static constexpr int quads = Dim / 4 / side;  ///< Its groups of four columns of vectors.
  static constexpr int stride = Dim + 4;        ///< Of vectors: no two rows begin in one bank.
  static constexpr int score_stride = Tile + 4;
  static constexpr int vector_floats = Tile * stride;
  static constexpr int score_floats = Tile * score_stride;
  static_assert(side * side == attention_threads);

  using Scores = float[each][each];
  using Vectors = float4[each][quads];

  [[nodiscard]] __device__ static int x() { return static_cast<int>(threadIdx.x) % side; }
  [[nodiscard]] __device__ static int y() { return static_cast<int>(threadIdx.x) / side; }
  /// The row of a thread's element (i, j), and the column of one of scores.
  [[nodiscard]] __device__ static int row(int i) { return y() + side * i; }
  [[nodiscard]] __device__ static int column(int j) { return x() + side * j; }
  /// The first of a thread's four columns of vectors (i, j).
  [[nodiscard]] __device__ static int quad(int j) { return 4 * x() + 4 * side * j; }
  /// A row and column of scores in a tile that begins at \p first. Added up in this order: with
  /// first + row(i), nvcc 13.0 gives the forward kernel for heads of 64 so many more registers
  /// (146, not 128) that one block less fits on a multiprocessor.
  [[nodiscard]] __device__ static std::int64_t row_from(std::int64_t first, int i) {
    return first + y() + side * i;
  }
  [[nodiscard]] __device__ static std::int64_t column_from(std::int64_t first, int j) {
    return first + x() + side * j;
  }

  /// Copies \p Tile vectors of \p place from \p first on to \p tile; writes zeros behind the last.
  template <class E>
  __device__ static void load(float* tile,
                              E const* tensor,
                              AttentionPlace const& place,
                              std::int64_t first,
                              AttentionExtents const& e) {
    auto const* const from = tensor + place.offset;
    for (int i = static_cast<int>(threadIdx.x); i < Tile * Dim; i += attention_threads) {
      int const row = i / Dim;
      int const column = i % Dim;
      bool const there = first + row < e.length && column < e.head_dim;
      tile[row * stride + column] =
          there ? read_one(from + (first + row) * place.step + column) : 0.F;
    }
  }

  /// Calls \p f(i, j) for each of a thread's elements of a tile of scores.
  template <class F>
  __device__ static void for_each_score(F&& f) {
#pragma unroll
    for (int i = 0; i < each; ++i) {
#pragma unroll
      for (int j = 0; j < each; ++j) {
        f(i, j);
      }
    }
  }

  /// s = a bᵀ.
  __device__ static void multiply(Scores& s, float const* a, float const* b) {
    for_each_score([&](int i, int j) { s[i][j] = 0; });
#pragma unroll 4
    for (int k = 0; k < Dim; k += 4) {
      float4 rows[each];
#pragma unroll
      for (int i = 0; i < each; ++i) {
        rows[i] = *reinterpret_cast<float4 const*>(a + row(i) * stride + k);
      }
#pragma unroll
      for (int j = 0; j < each; ++j) {
        auto const other = *reinterpret_cast<float4 const*>(b + column(j) * stride + k);
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
    for_each_score([&](int i, int j) { tile[row(i) * score_stride + column(j)] = s[i][j]; });
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
        factors[i] = *reinterpret_cast<float4 const*>(scores + row(i) * score_stride + k);
      }
#pragma unroll
      for (int j = 0; j < quads; ++j) {
        auto const* const from = vectors + k * stride + quad(j);
        auto const v0 = *reinterpret_cast<float4 const*>(from);
        auto const v1 = *reinterpret_cast<float4 const*>(from + stride);
        auto const v2 = *reinterpret_cast<float4 const*>(from + 2 * stride);
        auto const v3 = *reinterpret_cast<float4 const*>(from + 3 * stride);
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

  /// Rounds factor times row i of \p sum to \p tensor, for the rows and columns that exist.
  template <class E>
  __device__ static void store(E* tensor,
                               AttentionPlace const& place,
                               std::int64_t first,
                               AttentionExtents const& e,
                               Vectors const& sum,
                               float const (&factor)[each]) {
    auto* const to = tensor + place.offset;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      auto const position = row_from(first, i);
      if (position < e.length) {
#pragma unroll
        for (int j = 0; j < quads; ++j) {
          int const column_0 = quad(j);
          auto* const four = to + position * place.step + column_0;
          float const values[4] = {sum[i][j].x, sum[i][j].y, sum[i][j].z, sum[i][j].w};
#pragma unroll
          for (int n = 0; n < 4; ++n) {
            if (column_0 + n < e.head_dim) {
              write_one(four + n, factor[i] * values[n]);
            }
          }
        }
      }
    }
  }
};

/// What a block computes for queries: a tile \p T of one head. The last tiles, which see the most
/// keys, come first.
template <class T>
struct QueryTile {
  std::int64_t first;
  std::int64_t sequence;
  std::int64_t row;
  int head;
  AttentionPlace queries;
  AttentionPlace keys;  ///< And values: of the head that these queries read.

  __device__ explicit QueryTile(AttentionExtents const& e)
      : first(((e.length + T::size - 1) / T::size - 1 - blockIdx.x / e.sequences) * T::size),
        sequence(blockIdx.x % e.sequences),
        row(sequence / e.heads),
        head(static_cast<int>(sequence % e.heads)),
        queries(e, row, head, e.heads),
        keys(e, row, head / (e.heads / e.kv_heads), e.kv_heads) {}

  /// The query of a thread's row i.
  [[nodiscard]] __device__ std::int64_t query(int i) const { return T::row_from(first, i); }

  /// Calls \p f(first key) for each tile of keys that any of the queries sees.
  template <class F>
  __device__ void for_each_key_tile(AttentionExtents const& e, F&& f) const {
    auto const first_key = first < e.window ? 0 : first - e.window + 1;
    for (auto start = first_key / T::size * T::size; start < e.length && start < first + T::size;
         start += T::size) {
      f(start);
    }
  }
};

}  // namespace roundpipe::cu::detail
