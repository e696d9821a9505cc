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
  /// The first \p n keys (or values, or the gradient of either).
  template <class U>
  [[nodiscard]] MatrixView<U> keys(U* k, std::int64_t n) const {
    return {k + key_offset_, n, head_dim_, key_stride_};
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

/// Calls \p f(first, count, keys) for each block of queries of a sequence.
template <class F>
void for_each_query_block(std::int64_t length, F&& f) {
  for (std::int64_t first = 0; first < length; first += query_block) {
    auto const count = std::min(query_block, length - first);
    f(first, count, first + count);
  }
}

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
    for_each_query_block(s.length, [&](auto first, auto count, auto n) {
      auto const scores = zeroed_matrix(memory, count, n);
      add_product_nt<T>(scores, head.queries(queries, first, count), head.keys(keys, n), scale);
      Eigen::Array<T, query_block, 1> factor;
      for (std::int64_t j = 0; j < count; ++j) {
        auto const visible = first + j + 1;
        ArrayMap<T> row(memory + j * n, visible);
        auto const largest = row.maxCoeff();
        row = (row - largest).exp();
        auto const sum = row.sum();
        ArrayMap<T>(memory + j * n + visible, n - visible).setZero();
        factor[j] = T{1} / sum;
        log_sums[head.lse(first + j)] = largest + std::log(sum);
      }
      auto block = head.queries(result, first, count);
      add_product_nn<T>(block, scores, head.keys(values, n));
      block.map().array().colwise() *= factor.head(count);
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
    for_each_query_block(s.length, [&](auto first, auto count, auto n) {
      auto const block = head.queries(queries, first, count);
      auto const gradient = head.queries(gradients, first, count);
      auto const weights = zeroed_matrix(memory, count, n);
      auto const changes = zeroed_matrix(gradient_memory, count, n);
      add_product_nt<T>(weights, block, head.keys(keys, n), scale);
      add_product_nt<T>(changes, gradient, head.keys(values, n));
      Eigen::Array<T, query_block, 1> mean;  // weighted mean of the changes: the row sum of dO O
      mean.head(count) =
          (gradient.map().array() * head.queries(results, first, count).map().array())
              .rowwise()
              .sum();
      for (std::int64_t j = 0; j < count; ++j) {
        auto const visible = first + j + 1;
        ArrayMap<T> weight(memory + j * n, visible);
        ArrayMap<T> change(gradient_memory + j * n, visible);
        weight = (weight - log_sums[head.lse(first + j)]).exp();
        change = weight * (change - mean[j]);
        ArrayMap<T>(memory + j * n + visible, n - visible).setZero();
        ArrayMap<T>(gradient_memory + j * n + visible, n - visible).setZero();
      }
      add_product_tn<T>(head.keys(value_gradient, n), weights, gradient);
      add_product_nn<T>(
          head.queries(query_gradient, first, count), changes, head.keys(keys, n), scale);
      add_product_tn<T>(head.keys(key_gradient, n), changes, block, scale);
    });
  }
  store(dq, query_gradient);
  store(dk, key_gradient);
  store(dv, value_gradient);
}

}  // namespace roundpipe::nn::detail
