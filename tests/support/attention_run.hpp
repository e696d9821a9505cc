// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Attention on a CUDA device for tests: its tensors and their expected contents.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/attention/attention_cudnn.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <support/device_values.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe::test {

using Values = std::vector<double>;

/// One for the whole program, because making plans takes up to a second. Never destroyed, because
/// the driver may be gone at the program's end.
inline cu::CudnnAttention& cudnn() {
  static auto& attention = *new cu::CudnnAttention;
  return attention;
}

inline Shape queries_shape(AttentionShape const& s) {
  return {s.rows, s.length, s.heads, s.head_dim};
}
inline Shape keys_shape(AttentionShape const& s) {
  return {s.rows, s.length, s.kv_heads, s.head_dim};
}
inline Shape lse_shape(AttentionShape const& s) {
  return {s.rows, s.heads, s.length};
}

/// \p s with elements of \p type.
constexpr AttentionShape with_type(AttentionShape s, DType type) {
  s.dtype = type;
  return s;
}
/// \p s with a window.
constexpr AttentionShape with_window(AttentionShape s, std::int64_t window) {
  s.window = window;
  return s;
}

/// The norm of the difference, over the norm of \p expected or, if that is smaller, of as many
/// numbers of 0.1: a lone key has no gradient.
inline double error_between(Values const& values, Values const& expected) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (values[i] - expected[i]) * (values[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / std::max(norm, 0.01 * static_cast<double>(expected.size())));
}

/// Attention and its gradients, query by query.
struct AttentionReference {
  AttentionReference(AttentionShape const& s,
                     Values const& q,
                     Values const& k,
                     Values const& v,
                     Values const& dout)
      : out(q.size()), lse(lse_shape(s).size()), dq(q.size()), dk(k.size()), dv(k.size()) {
    auto const d = static_cast<std::size_t>(s.head_dim);
    auto const scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
    Values weight(static_cast<std::size_t>(s.length));
    auto const dot = [&](Values const& a, std::size_t i, Values const& b, std::size_t j) {
      double sum = 0;
      for (std::size_t n = 0; n < d; ++n) {
        sum += a[i + n] * b[j + n];
      }
      return sum;
    };
    auto const add = [&](Values& to, std::size_t i, double factor, Values const& b, std::size_t j) {
      for (std::size_t n = 0; n < d; ++n) {
        to[i + n] += factor * b[j + n];
      }
    };
    for (std::int64_t row = 0; row < s.rows; ++row) {
      for (std::int64_t head = 0; head < s.heads; ++head) {
        auto const kv_head = head / (s.heads / s.kv_heads);
        auto const at = [&](std::int64_t t) {
          return static_cast<std::size_t>(((row * s.length + t) * s.heads + head) * s.head_dim);
        };
        auto const key_at = [&](std::int64_t t) {
          return static_cast<std::size_t>(((row * s.length + t) * s.kv_heads + kv_head) *
                                          s.head_dim);
        };
        for (std::int64_t t = 0; t < s.length; ++t) {
          double largest = -1e300;
          auto const first = s.window == 0 ? 0 : std::max<std::int64_t>(0, t - s.window + 1);
          for (auto u = first; u <= t; ++u) {
            auto& w = weight[static_cast<std::size_t>(u)];
            w = scale * dot(q, at(t), k, key_at(u));
            largest = std::max(largest, w);
          }
          double sum = 0;
          for (auto u = first; u <= t; ++u) {
            sum += std::exp(weight[static_cast<std::size_t>(u)] - largest);
          }
          auto const log_sum = largest + std::log(sum);
          lse[static_cast<std::size_t>((row * s.heads + head) * s.length + t)] = log_sum;
          for (auto u = first; u <= t; ++u) {
            auto& w = weight[static_cast<std::size_t>(u)];
            w = std::exp(w - log_sum);
            add(out, at(t), w, v, key_at(u));
            add(dv, key_at(u), w, dout, at(t));
          }
          auto const mean = dot(dout, at(t), out, at(t));
          for (auto u = first; u <= t; ++u) {
            auto const change = scale * weight[static_cast<std::size_t>(u)] *
                                (dot(dout, at(t), v, key_at(u)) - mean);
            add(dq, at(t), change, k, key_at(u));
            add(dk, key_at(u), change, q, at(t));
          }
        }
      }
    }
  }

  Values out;
  Values lse;
  Values dq;
  Values dk;
  Values dv;
};

/// Attention's tensors on device 0: random operands, poisoned results, and a stream.
struct AttentionRun {
  explicit AttentionRun(AttentionShape const& shape)
      : s(shape),
        host_q(random_values(queries_shape(s).size(), s.dtype)),
        host_k(random_values(keys_shape(s).size(), s.dtype)),
        host_v(random_values(keys_shape(s).size(), s.dtype)),
        host_dout(random_values(queries_shape(s).size(), s.dtype)),
        q(queries_shape(s), s.dtype, host_q),
        k(keys_shape(s), s.dtype, host_k),
        v(keys_shape(s), s.dtype, host_v),
        dout(queries_shape(s), s.dtype, host_dout),
        out(queries_shape(s), s.dtype),
        lse(lse_shape(s), DType::f32),
        dq(queries_shape(s), s.dtype),
        dk(keys_shape(s), s.dtype),
        dv(keys_shape(s), s.dtype) {}

  [[nodiscard]] std::vector<std::vector<std::byte>> bits() const {
    return {out.bits(), lse.bits(), dq.bits(), dk.bits(), dv.bits()};
  }
  [[nodiscard]] AttentionReference reference() const {
    return AttentionReference(s, host_q, host_k, host_v, host_dout);
  }

  AttentionShape s;
  Values host_q;
  Values host_k;
  Values host_v;
  Values host_dout;
  DeviceValues q;
  DeviceValues k;
  DeviceValues v;
  DeviceValues dout;
  DeviceValues out;
  DeviceValues lse;
  DeviceValues dq;
  DeviceValues dk;
  DeviceValues dv;
  cu::Stream stream;
};

/// A result is rounded once. Gradients also carry the rounding of the output that they are formed
/// from, and with cuDNN the rounding of probabilities and of scores' gradients to 16 bits.
inline void check_results(AttentionRun const& run, AttentionReference const& expected) {
  CAPTURE(run.s.rows);
  CAPTURE(run.s.length);
  CAPTURE(run.s.heads);
  CAPTURE(run.s.kv_heads);
  CAPTURE(run.s.head_dim);
  CAPTURE(run.s.window);
  CAPTURE(name_of(run.s.dtype));
  auto const bound = tolerance(run.s.dtype);
  CHECK(error_between(run.out.values(), expected.out) < bound);
  CHECK(error_between(run.lse.values(), expected.lse) < 1e-5);
  CHECK(error_between(run.dq.values(), expected.dq) < 2 * bound);
  CHECK(error_between(run.dk.values(), expected.dk) < 2 * bound);
  CHECK(error_between(run.dv.values(), expected.dv) < 2 * bound);
}

}  // namespace roundpipe::test
