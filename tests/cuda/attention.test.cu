// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/ops/attention.cuh>
#include <support/attention_run.hpp>
#include <support/device_values.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

namespace cu = roundpipe::cu;
using roundpipe::AttentionShape;
using roundpipe::DeviceId;
using roundpipe::DeviceTensor;
using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::test::AttentionRun;
using roundpipe::test::cudnn;
using roundpipe::test::DeviceValues;
using roundpipe::test::error_between;
using roundpipe::test::error_of;
using roundpipe::test::lse_shape;
using roundpipe::test::queries_shape;
using roundpipe::test::tolerance;
using roundpipe::test::Values;
using roundpipe::test::with_type;
using roundpipe::test::with_window;

namespace {

constexpr cu::AttentionOptions own_kernels{.cudnn = false};

void compute(AttentionRun const& r, cu::AttentionOptions options = {}) {
  cu::DeviceMemory const scratch(DeviceId(0), cu::attention_scratch_bytes(r.s, options));
  cu::attention(
      r.stream, cudnn(), options, DeviceId(0), scratch.bytes(), r.s, r.out, r.lse, r.q, r.k, r.v);
  cu::attention_backward(r.stream,
                         cudnn(),
                         options,
                         DeviceId(0),
                         scratch.bytes(),
                         r.s,
                         r.dq,
                         r.dk,
                         r.dv,
                         r.dout,
                         r.q,
                         r.k,
                         r.v,
                         r.out,
                         r.lse);
  r.stream.sync();
}

void check_against_reference(AttentionShape const& s, cu::AttentionOptions options = {}) {
  AttentionRun const run(s);
  compute(run, options);
  check_results(run, run.reference());
}

// rows, length, heads, kv_heads, head_dim
constexpr AttentionShape all_shapes[] = {{2, 1, 2, 2, 32},
                                         {1, 7, 4, 2, 64},
                                         {2, 64, 4, 1, 128},
                                         {1, 129, 2, 2, 40},
                                         {2, 129, 6, 2, 128},
                                         {1, 300, 2, 1, 256},
                                         {1, 1000, 2, 1, 64}};
constexpr AttentionShape windowed_shapes[] = {
    {1, 300, 4, 2, 64}, {2, 300, 2, 1, 128}, {1, 300, 2, 2, 256}};
// Of one key, within a tile, of whole tiles, and of more than half of the keys.
constexpr std::int64_t windows[] = {1, 3, 31, 32, 64, 100, 299};
constexpr AttentionShape odd_shapes[] = {{1, 70, 3, 3, 10}, {1, 33, 2, 2, 2}, {1, 65, 2, 1, 194}};

}  // namespace

TEST_CASE("our own kernels agree with sums in double") {
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    for (auto const& shape : all_shapes) {
      check_against_reference(with_type(shape, type), own_kernels);
    }
    for (auto const& shape : odd_shapes) {
      check_against_reference(with_type(shape, type), own_kernels);
    }
  }
}

TEST_CASE("whatever kernels compute them, results agree with sums in double") {
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    for (auto const& shape : all_shapes) {
      check_against_reference(with_type(shape, type));
    }
    check_against_reference(with_type(odd_shapes[0], type));
  }
}

TEST_CASE("in windows of any length our own kernels agree with sums in double") {
  for (auto const type : {DType::f32, DType::bf16}) {
    for (auto const& shape : windowed_shapes) {
      for (auto const window : windows) {
        check_against_reference(with_window(with_type(shape, type), window), own_kernels);
      }
    }
    check_against_reference(with_window(with_type(odd_shapes[0], type), 5), own_kernels);
    check_against_reference(with_window(with_type(odd_shapes[2], type), 33), own_kernels);
  }
}

TEST_CASE("whatever kernels compute them, results in windows agree with sums in double") {
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    for (auto const& shape : windowed_shapes) {
      for (auto const window : windows) {
        check_against_reference(with_window(with_type(shape, type), window));
      }
    }
  }
}

TEST_CASE("without a fixed order of sums, results are as exact") {
  for (auto const type : {DType::bf16, DType::f16}) {
    check_against_reference(with_type({2, 129, 6, 2, 128}, type), {.deterministic = false});
  }
}

TEST_CASE("equal inputs give equal bits") {
  for (bool const with_cudnn : {false, true}) {
    cu::AttentionOptions const options{.cudnn = with_cudnn};
    for (auto const type : {DType::f32, DType::bf16}) {
      for (std::int64_t const window : {0, 130}) {
        AttentionRun const run({2, 500, 8, 2, 128, type, window});
        compute(run, options);
        auto const bits = run.bits();
        for (int i = 0; i < 5; ++i) {
          compute(run, options);
          CHECK(run.bits() == bits);
        }
      }
    }
  }
}

TEST_CASE("tensors may begin at any address") {
  // Not at a multiple of 16 bytes: cuDNN cannot compute these.
  AttentionShape const s{1, 40, 2, 1, 64, DType::bf16};
  AttentionRun const run(s);
  DeviceValues const shifted(queries_shape(s), s.dtype, run.host_q, 2);
  cu::DeviceMemory const scratch(DeviceId(0), cu::attention_scratch_bytes(s));
  cu::attention(run.stream,
                cudnn(),
                {},
                DeviceId(0),
                scratch.bytes(),
                s,
                run.out,
                run.lse,
                shifted,
                run.k,
                run.v);
  CHECK(error_between(run.out.values(), run.reference().out) < tolerance(s.dtype));
}

TEST_CASE("unsupported attention is refused, and the error says what is unsupported") {
  AttentionShape const s{1, 4, 2, 1, 64, DType::bf16};
  AttentionRun const run(s);
  cu::DeviceMemory const scratch(DeviceId(0), cu::attention_scratch_bytes(s));
  auto const attempt = [&](AttentionShape const& shape, DeviceTensor const& lse) {
    return error_of([&] {
      cu::attention(run.stream,
                    cudnn(),
                    {},
                    DeviceId(0),
                    scratch.bytes(),
                    shape,
                    run.out,
                    lse,
                    run.q,
                    run.k,
                    run.v);
    });
  };
  auto odd = s;
  odd.head_dim = 63;
  CHECK(attempt(odd, run.lse).code() == Errc::unsupported);
  CHECK(attempt(odd, run.lse).message().find("heads of 63 ") != std::string::npos);
  auto large = s;
  large.head_dim = 320;
  CHECK(attempt(large, run.lse).message().find("heads of 320 ") != std::string::npos);
  CHECK(attempt(with_type(s, DType::f16), run.lse).code() == Errc::unsupported);
  CHECK(attempt(s, DeviceValues(lse_shape(s), DType::bf16)).code() == Errc::unsupported);
  CHECK(error_of([&] {
          cu::attention(
              run.stream, cudnn(), {}, DeviceId(0), {}, s, run.out, run.lse, run.q, run.k, run.v);
        }).code() == Errc::invalid_argument);
}

TEST_CASE("without positions nothing happens") {
  AttentionShape const s{0, 16, 2, 1, 64, DType::bf16};
  AttentionRun const run(s);
  compute(run);
  CHECK(run.stream.is_done());
}

#if defined(ROUNDPIPE_HAS_CUDNN) && ROUNDPIPE_HAS_CUDNN

TEST_CASE("cuDNN and our own kernels agree, also slice by slice") {
  // Slices of two rows and one, and of two key heads and one.
  cu::AttentionOptions const small{.scratch_mib = 32};
  for (AttentionShape const& shape : {AttentionShape{3, 512, 24, 4, 64},
                                      AttentionShape{2, 1024, 15, 3, 64},
                                      with_window({2, 1024, 15, 3, 64}, 200)}) {
    auto const s = with_type(shape, DType::bf16);
    auto const slice = cu::detail::attention_slice(s, small);
    CHECK((s.rows % slice.rows != 0 || s.kv_heads % slice.kv_heads != 0));
    AttentionRun const run(s);
    compute(run, small);
    Values const results[] = {
        run.out.values(), run.lse.values(), run.dq.values(), run.dk.values(), run.dv.values()};
    compute(run, own_kernels);
    auto const bound = tolerance(s.dtype);
    CHECK(error_between(results[0], run.out.values()) < 2 * bound);
    CHECK(error_between(results[1], run.lse.values()) < 1e-5);
    CHECK(error_between(results[2], run.dq.values()) < 3 * bound);
    CHECK(error_between(results[3], run.dk.values()) < 3 * bound);
    CHECK(error_between(results[4], run.dv.values()) < 3 * bound);
  }
}

#endif
