// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Causal grouped-query attention on the host, a block of queries at a time.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/host_linear.hpp>
#include <roundpipe/nn/host_scratch.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace roundpipe::nn::detail {

/// The number of queries whose scores exist at a time. Keys after a block's last query are left
/// out: smaller blocks waste less above the diagonal, larger blocks make better products.
inline constexpr std::int64_t query_block = 64;

/// One (row, head) of queries with their keys and values, and one block of them.
class AttentionHead {
 public:
  AttentionHead(AttentionShape const& shape, std::int64_t row, std::int64_t head)
      : head_dim_(shape.head_dim),
        query_stride_(shape.heads * shape.head_dim),
        key_stride_(shape.kv_heads * shape.head_dim),
        query_offset_(row * shape.length * query_stride_ + head * shape.head_dim),
        key_offset_(row * shape.length * key_stride_ +
                    head / (shape.heads / shape.kv_heads) * shape.head_dim),
        lse_offset_((row * shape.heads + head) * shape.length) {}

  /// \p n queries (or outputs, or the gradient of either) from \p first on.
  template <class U>
  [[nodiscard]] MatrixView<U> queries(U* q, std::int64_t first, std::int64_t n) const {
    return {q + query_offset_ + first * query_stride_, n, head_dim_, query_stride_};
  }
  /// \p n keys (or values, or the gradient of either) from \p first on.
  template <class U>
  [[nodiscard]] MatrixView<U> keys(U* k, std::int64_t first, std::int64_t n) const {
    return {k + key_offset_ + first * key_stride_, n, head_dim_, key_stride_};
  }
  [[nodiscard]] std::int64_t lse(std::int64_t query) const { return lse_offset_ + query; }

 private:
  std::int64_t head_dim_;
  std::int64_t query_stride_;
  std::int64_t key_stride_;
  std::int64_t query_offset_;
  std::int64_t key_offset_;
  std::int64_t lse_offset_;
};

template <class T>
[[nodiscard]] MatrixView<T> zeroed_matrix(T* memory, std::int64_t rows, std::int64_t cols) {
  std::fill_n(memory, rows * cols, T{0});
  return MatrixView<T>::dense(memory, rows, cols);
}

/// A block of queries and the keys that any of them sees.
struct QueryBlock {
  std::int64_t first = 0;  ///< Query.
  std::int64_t count = 0;
  std::int64_t first_key = 0;
  std::int64_t keys = 0;

  friend bool operator==(QueryBlock const&, QueryBlock const&) = default;
};

/// Calls \p f(block) for each block of queries of a sequence.
template <class F>
void for_each_query_block(AttentionShape const& s, F&& f) {
  for (std::int64_t first = 0; first < s.length; first += query_block) {
    auto const count = std::min(query_block, s.length - first);
    auto const first_key = s.window == 0 ? 0 : std::max<std::int64_t>(0, first - s.window + 1);
    f(QueryBlock{first, count, first_key, first + count - first_key});
  }
}

/// A query's row of scores: the columns that it sees, and those before and behind, which the
/// functions below set to zero.
struct VisibleKeys {
  std::int64_t begin;  ///< Columns of the block.
  std::int64_t end;

  /// Of query \p j of \p block.
  VisibleKeys(AttentionShape const& s, QueryBlock const& block, std::int64_t j)
      : begin(s.window == 0
                  ? 0
                  : std::max<std::int64_t>(0, block.first + j - s.window + 1 - block.first_key)),
        end(block.first + j + 1 - block.first_key) {}

  template <class T>
  [[nodiscard]] ArrayMap<T> of(T* row) const {
    return {row + begin, end - begin};
  }
  template <class T>
  void clear_others(T* row, std::int64_t columns) const {
    std::fill_n(row, begin, T{0});
    std::fill_n(row + end, columns - end, T{0});
  }
};

/// The attention output and its log-sum-exp.
template <class T>
void run_attention(AttentionShape const& s,
                   DeviceTensor const& out,
                   DeviceTensor const& lse,
                   DeviceTensor const& q,
                   DeviceTensor const& k,
                   DeviceTensor const& v) {
  HostScratch scratch;
  T const* const queries = load<T>(scratch, q);
  T const* const keys = load<T>(scratch, k);
  T const* const values = load<T>(scratch, v);
  T* const result = output_with_addend<T>(scratch, out, absent);
  T* const log_sums = output<T>(scratch, lse);
  T* const memory = scratch.take<T>(static_cast<std::size_t>(query_block * s.length));
  auto const scale = T{1} / std::sqrt(static_cast<T>(s.head_dim));
  for (std::int64_t i = 0; i < s.rows * s.heads; ++i) {
    AttentionHead const head(s, i / s.heads, i % s.heads);
    for_each_query_block(s, [&](QueryBlock const& b) {
      auto const scores = zeroed_matrix(memory, b.count, b.keys);
      add_product_nt<T>(scores,
                        head.queries(queries, b.first, b.count),
                        head.keys(keys, b.first_key, b.keys),
                        scale);
      Eigen::Array<T, query_block, 1> factor;
      for (std::int64_t j = 0; j < b.count; ++j) {
        VisibleKeys const visible(s, b, j);
        auto row = visible.of(memory + j * b.keys);
        auto const largest = row.maxCoeff();
        row = (row - largest).exp();
        auto const sum = row.sum();
        visible.clear_others(memory + j * b.keys, b.keys);
        factor[j] = T{1} / sum;
        log_sums[head.lse(b.first + j)] = largest + std::log(sum);
      }
      auto block = head.queries(result, b.first, b.count);
      add_product_nn<T>(block, scores, head.keys(values, b.first_key, b.keys));
      block.map().array().colwise() *= factor.head(b.count);
    });
  }
  store(out, result);
  store(lse, log_sums);
}

/// The gradients of \ref run_attention (Dao et al. 2022, algorithm 4, with blocks of queries only).
template <class T>
void run_attention_backward(AttentionShape const& s,
                            DeviceTensor const& dq,
                            DeviceTensor const& dk,
                            DeviceTensor const& dv,
                            DeviceTensor const& dout,
                            DeviceTensor const& q,
                            DeviceTensor const& k,
                            DeviceTensor const& v,
                            DeviceTensor const& out,
                            DeviceTensor const& lse) {
  HostScratch scratch;
  T const* const queries = load<T>(scratch, q);
  T const* const keys = load<T>(scratch, k);
  T const* const values = load<T>(scratch, v);
  T const* const results = load<T>(scratch, out);
  T const* const gradients = load<T>(scratch, dout);
  T const* const log_sums = load<T>(scratch, lse);
  T* const query_gradient = output_with_addend<T>(scratch, dq, absent);
  T* const key_gradient = output_with_addend<T>(scratch, dk, absent);
  T* const value_gradient = output_with_addend<T>(scratch, dv, absent);
  auto const area = static_cast<std::size_t>(query_block * s.length);
  T* const memory = scratch.take<T>(area);
  T* const gradient_memory = scratch.take<T>(area);
  auto const scale = T{1} / std::sqrt(static_cast<T>(s.head_dim));
  for (std::int64_t i = 0; i < s.rows * s.heads; ++i) {
    AttentionHead const head(s, i / s.heads, i % s.heads);
    for_each_query_block(s, [&](QueryBlock const& b) {
      auto const of_keys = [&](auto* vectors) { return head.keys(vectors, b.first_key, b.keys); };
      auto const block = head.queries(queries, b.first, b.count);
      auto const gradient = head.queries(gradients, b.first, b.count);
      auto const weights = zeroed_matrix(memory, b.count, b.keys);
      auto const changes = zeroed_matrix(gradient_memory, b.count, b.keys);
      add_product_nt<T>(weights, block, of_keys(keys), scale);
      add_product_nt<T>(changes, gradient, of_keys(values));
      Eigen::Array<T, query_block, 1> mean;  // weighted mean of the changes: the row sum of dO O
      mean.head(b.count) =
          (gradient.map().array() * head.queries(results, b.first, b.count).map().array())
              .rowwise()
              .sum();
      for (std::int64_t j = 0; j < b.count; ++j) {
        VisibleKeys const visible(s, b, j);
        auto weight = visible.of(memory + j * b.keys);
        auto change = visible.of(gradient_memory + j * b.keys);
        weight = (weight - log_sums[head.lse(b.first + j)]).exp();
        change = weight * (change - mean[j]);
        visible.clear_others(memory + j * b.keys, b.keys);
        visible.clear_others(gradient_memory + j * b.keys, b.keys);
      }
      add_product_tn<T>(of_keys(value_gradient), weights, gradient);
      add_product_nn<T>(
          head.queries(query_gradient, b.first, b.count), changes, of_keys(keys), scale);
      add_product_tn<T>(of_keys(key_gradient), changes, block, scale);
    });
  }
  store(dq, query_gradient);
  store(dk, key_gradient);
  store(dv, value_gradient);
}

}  // namespace roundpipe::nn::detail
