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
#include <cstdint>

namespace roundpipe::nn::detail {

/// Queries whose scores exist at a time. Keys behind a block's last query are left out, so smaller
/// blocks waste less above the diagonal, and larger ones make better products.
inline constexpr std::int64_t query_block = 64;

/// One (row, head) of queries with their keys and values, and a block's part of them.
template <class T>
class AttentionHead {
 public:
  AttentionHead(AttentionShape const& shape, std::int64_t row, std::int64_t head)
      : shape_(shape),
        query_stride_(shape.heads * shape.head_dim),
        key_stride_(shape.kv_heads * shape.head_dim),
        query_offset_(row * shape.length * query_stride_ + head * shape.head_dim),
        key_offset_(row * shape.length * key_stride_ +
                    head / (shape.heads / shape.kv_heads) * shape.head_dim),
        lse_offset_((row * shape.heads + head) * shape.length) {}

  /// \p count queries (outputs, or gradients of either) from \p first on.
  [[nodiscard]] ConstStridedMap<T> queries(T const* q, std::int64_t first, std::int64_t n) const {
    return {q + query_offset_ + first * query_stride_, n, shape_.head_dim, stride(query_stride_)};
  }
  [[nodiscard]] StridedMap<T> queries(T* q, std::int64_t first, std::int64_t n) const {
    return {q + query_offset_ + first * query_stride_, n, shape_.head_dim, stride(query_stride_)};
  }
  /// The first \p n keys (or values, or gradients of either).
  [[nodiscard]] ConstStridedMap<T> keys(T const* k, std::int64_t n) const {
    return {k + key_offset_, n, shape_.head_dim, stride(key_stride_)};
  }
  [[nodiscard]] StridedMap<T> keys(T* k, std::int64_t n) const {
    return {k + key_offset_, n, shape_.head_dim, stride(key_stride_)};
  }
  [[nodiscard]] std::int64_t lse(std::int64_t query) const { return lse_offset_ + query; }

 private:
  static Eigen::OuterStride<> stride(std::int64_t n) { return Eigen::OuterStride<>(n); }

  AttentionShape shape_;
  std::int64_t query_stride_;
  std::int64_t key_stride_;
  std::int64_t query_offset_;
  std::int64_t key_offset_;
  std::int64_t lse_offset_;
};

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
  T* const result = output<T>(scratch, out);
  T* const log_sums = output<T>(scratch, lse);
  T* const memory = scratch.take<T>(static_cast<std::size_t>(query_block * s.length));
  auto const scale = T{1} / std::sqrt(static_cast<T>(s.head_dim));
  for (std::int64_t i = 0; i < s.rows * s.heads; ++i) {
    AttentionHead<T> const head(s, i / s.heads, i % s.heads);
    for_each_query_block(s.length, [&](auto first, auto count, auto n) {
      MatrixMap<T> scores(memory, count, n);
      scores.noalias() =
          (head.queries(queries, first, count) * scale) * head.keys(keys, n).transpose();
      auto block = head.queries(result, first, count);
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
      block.noalias() = scores * head.keys(values, n);
      block.array().colwise() *= factor.head(count);
    });
  }
  store(out, result);
  store(lse, log_sums);
}

/// The gradients of \ref run_attention (Dao et al. 2022, algorithm 4, by blocks of queries alone).
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
  T* const query_gradient = output<T>(scratch, dq);
  T* const key_gradient = output<T>(scratch, dk);
  T* const value_gradient = output<T>(scratch, dv);
  auto const area = static_cast<std::size_t>(query_block * s.length);
  T* const memory = scratch.take<T>(area);
  T* const gradient_memory = scratch.take<T>(area);
  auto const scale = T{1} / std::sqrt(static_cast<T>(s.head_dim));
  for (std::int64_t i = 0; i < s.rows * s.heads; ++i) {
    AttentionHead<T> const head(s, i / s.heads, i % s.heads);
    if (i % s.heads % (s.heads / s.kv_heads) == 0) {  // a group's first head
      head.keys(key_gradient, s.length).setZero();
      head.keys(value_gradient, s.length).setZero();
    }
    for_each_query_block(s.length, [&](auto first, auto count, auto n) {
      auto const block = head.queries(queries, first, count);
      auto const gradient = head.queries(gradients, first, count);
      MatrixMap<T> weights(memory, count, n);
      MatrixMap<T> changes(gradient_memory, count, n);
      weights.noalias() = (block * scale) * head.keys(keys, n).transpose();
      changes.noalias() = gradient * head.keys(values, n).transpose();
      Eigen::Array<T, query_block, 1> mean;  // of the changes, by weight: the row sum of dO O
      mean.head(count) =
          (gradient.array() * head.queries(results, first, count).array()).rowwise().sum();
      for (std::int64_t j = 0; j < count; ++j) {
        auto const visible = first + j + 1;
        ArrayMap<T> weight(memory + j * n, visible);
        ArrayMap<T> change(gradient_memory + j * n, visible);
        weight = (weight - log_sums[head.lse(first + j)]).exp();
        change = weight * (change - mean[j]);
        ArrayMap<T>(memory + j * n + visible, n - visible).setZero();
        ArrayMap<T>(gradient_memory + j * n + visible, n - visible).setZero();
      }
      head.keys(value_gradient, n).noalias() += weights.transpose() * gradient;
      head.queries(query_gradient, first, count).noalias() = (changes * scale) * head.keys(keys, n);
      head.keys(key_gradient, n).noalias() += (changes.transpose() * scale) * block;
    });
  }
  store(dq, query_gradient);
  store(dk, key_gradient);
  store(dv, value_gradient);
}

}  // namespace roundpipe::nn::detail
