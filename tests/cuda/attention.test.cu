// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/ops/attention.cuh>
#include <roundpipe/cuda/stream.hpp>
#include <support/device_values.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace cu = roundpipe::cu;
using roundpipe::AttentionShape;
using roundpipe::DeviceId;
using roundpipe::DeviceTensor;
using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::Shape;
using roundpipe::test::DeviceValues;
using roundpipe::test::error_of;
using roundpipe::test::random_values;

namespace {

using Values = std::vector<double>;

Shape queries(AttentionShape const& s) {
  return {s.rows, s.length, s.heads, s.head_dim};
}
Shape keys(AttentionShape const& s) {
  return {s.rows, s.length, s.kv_heads, s.head_dim};
}
Shape statistics(AttentionShape const& s) {
  return {s.rows, s.heads, s.length};
}

/// The norm of the difference over that of \p expected, or over that of numbers of 0.1 where it is
/// smaller: a lone key has no gradient.
double error_between(Values const& values, Values const& expected) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (values[i] - expected[i]) * (values[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / std::max(norm, 0.01 * static_cast<double>(expected.size())));
}

/// Attention and its gradients, query by query.
struct Reference {
  Reference(AttentionShape const& s,
            Values const& q,
            Values const& k,
            Values const& v,
            Values const& dout)
      : out(q.size()), lse(statistics(s).size()), dq(q.size()), dk(k.size()), dv(k.size()) {
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
          for (std::int64_t u = 0; u <= t; ++u) {
            auto& w = weight[static_cast<std::size_t>(u)];
            w = scale * dot(q, at(t), k, key_at(u));
            largest = std::max(largest, w);
          }
          double sum = 0;
          for (std::int64_t u = 0; u <= t; ++u) {
            sum += std::exp(weight[static_cast<std::size_t>(u)] - largest);
          }
          auto const log_sum = largest + std::log(sum);
          lse[static_cast<std::size_t>((row * s.heads + head) * s.length + t)] = log_sum;
          for (std::int64_t u = 0; u <= t; ++u) {
            auto& w = weight[static_cast<std::size_t>(u)];
            w = std::exp(w - log_sum);
            add(out, at(t), w, v, key_at(u));
            add(dv, key_at(u), w, dout, at(t));
          }
          auto const mean = dot(dout, at(t), out, at(t));
          for (std::int64_t u = 0; u <= t; ++u) {
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

/// Attention on the device: fresh random operands, poisoned results.
struct Run {
  explicit Run(AttentionShape const& shape)
      : s(shape),
        host_q(random_values(queries(s).size(), s.dtype)),
        host_k(random_values(keys(s).size(), s.dtype)),
        host_v(random_values(keys(s).size(), s.dtype)),
        host_dout(random_values(queries(s).size(), s.dtype)),
        q(queries(s), s.dtype, host_q),
        k(keys(s), s.dtype, host_k),
        v(keys(s), s.dtype, host_v),
        dout(queries(s), s.dtype, host_dout),
        out(queries(s), s.dtype),
        lse(statistics(s), DType::f32),
        dq(queries(s), s.dtype),
        dk(keys(s), s.dtype),
        dv(keys(s), s.dtype) {}

  /// With the process's options.
  void operator()() const {
    cu::DeviceMemory const scratch(DeviceId(0), cu::attention_scratch_bytes(s));
    cu::attention(stream, DeviceId(0), scratch.bytes(), s, out, lse, q, k, v);
    cu::attention_backward(
        stream, DeviceId(0), scratch.bytes(), s, dq, dk, dv, dout, q, k, v, out, lse);
    stream.sync();
  }
  std::vector<std::vector<std::byte>> bits() const {
    return {out.bits(), lse.bits(), dq.bits(), dk.bits(), dv.bits()};
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

/// Sets the process's options for a scope.
struct Options {
  explicit Options(cu::AttentionOptions options) { cu::set_attention_options(options); }
  Options(Options const&) = delete;
  Options& operator=(Options const&) = delete;
  ~Options() { cu::set_attention_options(former); }

  cu::AttentionOptions const former = cu::attention_options();
};
constexpr cu::AttentionOptions own_kernels{.cudnn = false};

/// A result is rounded once. Gradients carry the rounding of the output that they are formed from,
/// too, and, by cuDNN, that of probabilities and of scores' gradients to 16 bits.
void check_results(Run const& run, Reference const& expected) {
  CAPTURE(run.s.rows);
  CAPTURE(run.s.length);
  CAPTURE(run.s.heads);
  CAPTURE(run.s.kv_heads);
  CAPTURE(run.s.head_dim);
  CAPTURE(name_of(run.s.dtype));
  auto const bound = roundpipe::test::tolerance(run.s.dtype);
  CHECK(error_between(run.out.values(), expected.out) < bound);
  CHECK(error_between(run.lse.values(), expected.lse) < 1e-5);
  CHECK(error_between(run.dq.values(), expected.dq) < 2 * bound);
  CHECK(error_between(run.dk.values(), expected.dk) < 2 * bound);
  CHECK(error_between(run.dv.values(), expected.dv) < 2 * bound);
}

void check_against_reference(AttentionShape const& s) {
  Run const run(s);
  run();
  check_results(run, Reference(s, run.host_q, run.host_k, run.host_v, run.host_dout));
}

// rows, length, heads, kv_heads, head_dim
constexpr AttentionShape all_shapes[] = {{2, 1, 2, 2, 32},
                                         {1, 7, 4, 2, 64},
                                         {2, 64, 4, 1, 128},
                                         {1, 129, 2, 2, 40},
                                         {2, 129, 6, 2, 128},
                                         {1, 300, 2, 1, 256},
                                         {1, 1000, 2, 1, 64}};
constexpr AttentionShape odd_shapes[] = {{1, 70, 3, 3, 10}, {1, 33, 2, 2, 2}, {1, 65, 2, 1, 194}};

AttentionShape with(AttentionShape s, DType type) {
  s.dtype = type;
  return s;
}

}  // namespace

TEST_CASE("our own kernels agree with sums in double") {
  Options const options(own_kernels);
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    for (auto const& shape : all_shapes) {
      check_against_reference(with(shape, type));
    }
    for (auto const& shape : odd_shapes) {
      check_against_reference(with(shape, type));
    }
  }
}

TEST_CASE("whatever computes them, results agree with sums in double") {
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    for (auto const& shape : all_shapes) {
      check_against_reference(with(shape, type));
    }
    check_against_reference(with(odd_shapes[0], type));
  }
}

TEST_CASE("without a fixed order of sums, results are as exact") {
  Options const options({.deterministic = false});
  for (auto const type : {DType::bf16, DType::f16}) {
    check_against_reference(with({2, 129, 6, 2, 128}, type));
  }
}

TEST_CASE("equal inputs give equal bits") {
  for (bool const cudnn : {false, true}) {
    Options const options({.cudnn = cudnn});
    for (auto const type : {DType::f32, DType::bf16}) {
      Run const run({2, 500, 8, 2, 128, type});
      run();
      auto const bits = run.bits();
      for (int i = 0; i < 5; ++i) {
        run();
        CHECK(run.bits() == bits);
      }
    }
  }
}

TEST_CASE("tensors may begin anywhere") {
  // Not at a multiple of 16 bytes: cuDNN has to stand back.
  AttentionShape const s{1, 40, 2, 1, 64, DType::bf16};
  Run const run(s);
  DeviceValues const shifted(queries(s), s.dtype, run.host_q, 2);
  cu::DeviceMemory const scratch(DeviceId(0), cu::attention_scratch_bytes(s));
  cu::attention(
      run.stream, DeviceId(0), scratch.bytes(), s, run.out, run.lse, shifted, run.k, run.v);
  Reference const expected(s, run.host_q, run.host_k, run.host_v, run.host_dout);
  CHECK(error_between(run.out.values(), expected.out) < roundpipe::test::tolerance(s.dtype));
}

TEST_CASE("what is not computed is named") {
  AttentionShape const s{1, 4, 2, 1, 64, DType::bf16};
  Run const run(s);
  cu::DeviceMemory const scratch(DeviceId(0), cu::attention_scratch_bytes(s));
  auto const attempt = [&](AttentionShape const& shape, DeviceTensor const& lse) {
    return error_of([&] {
      cu::attention(
          run.stream, DeviceId(0), scratch.bytes(), shape, run.out, lse, run.q, run.k, run.v);
    });
  };
  auto odd = s;
  odd.head_dim = 63;
  CHECK(attempt(odd, run.lse).code() == Errc::unsupported);
  CHECK(attempt(odd, run.lse).message().find("heads of 63 ") != std::string::npos);
  auto large = s;
  large.head_dim = 320;
  CHECK(attempt(large, run.lse).message().find("heads of 320 ") != std::string::npos);
  CHECK(attempt(with(s, DType::f16), run.lse).code() == Errc::unsupported);
  CHECK(attempt(s, DeviceValues(statistics(s), DType::bf16)).code() == Errc::unsupported);
  CHECK(error_of([&] {
          cu::attention(run.stream, DeviceId(0), {}, s, run.out, run.lse, run.q, run.k, run.v);
        }).code() == Errc::invalid_argument);
}

TEST_CASE("without positions there is nothing to do") {
  AttentionShape const s{0, 16, 2, 1, 64, DType::bf16};
  Run const run(s);
  run();
  CHECK(run.stream.is_done());
}

#if defined(ROUNDPIPE_HAS_CUDNN) && ROUNDPIPE_HAS_CUDNN

TEST_CASE("cuDNN computes the usual shapes within the scratch") {
  for (auto const type : {DType::bf16, DType::f16}) {
    for (AttentionShape const& shape : {AttentionShape{2, 512, 8, 2, 128},
                                        AttentionShape{1, 1024, 16, 8, 128},
                                        AttentionShape{2, 512, 8, 8, 64}}) {
      auto const s = with(shape, type);
      for (bool const deterministic : {false, true}) {
        cu::AttentionOptions const options{.deterministic = deterministic};
        auto const bytes =
            cu::CudnnAttention::instance().backward_workspace_bytes(DeviceId(0), s, options);
        CHECK(bytes > 0);
        CHECK(bytes <= cu::detail::cudnn_scratch_bytes(s, options));
      }
      Run const run(s);
      cu::DeviceMemory const scratch(DeviceId(0), cu::attention_scratch_bytes(s));
      CHECK(cu::CudnnAttention::instance().forward(
          run.stream, DeviceId(0), scratch.bytes(), s, run.out, run.lse, run.q, run.k, run.v));
      run.stream.sync();
    }
  }
}

TEST_CASE("cuDNN and our own kernels agree, also slice by slice") {
  // Slices of two rows and one, and of two key heads and one.
  Options const small({.scratch_mib = 32});
  for (AttentionShape const& shape :
       {AttentionShape{3, 512, 24, 4, 64}, AttentionShape{2, 1024, 15, 3, 64}}) {
    auto const s = with(shape, DType::bf16);
    auto const slice = cu::detail::attention_slice(s, cu::attention_options());
    CHECK((s.rows % slice.rows != 0 || s.kv_heads % slice.kv_heads != 0));
    Run const run(s);
    run();
    Values const results[] = {
        run.out.values(), run.lse.values(), run.dq.values(), run.dk.values(), run.dv.values()};
    Options const options(own_kernels);
    run();
    auto const bound = roundpipe::test::tolerance(s.dtype);
    CHECK(error_between(results[0], run.out.values()) < 2 * bound);
    CHECK(error_between(results[1], run.lse.values()) < 1e-5);
    CHECK(error_between(results[2], run.dq.values()) < 3 * bound);
    CHECK(error_between(results[3], run.dk.values()) < 3 * bound);
    CHECK(error_between(results[4], run.dv.values()) < 3 * bound);
  }
}

#endif
