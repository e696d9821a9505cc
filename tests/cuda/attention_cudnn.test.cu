// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/attention/attention_cudnn.hpp>
#include <roundpipe/cuda/attention/attention_plan.hpp>
#include <roundpipe/cuda/device/device_memory.hpp>
#include <support/attention_run.hpp>
#include <support/device_values.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#if defined(ROUNDPIPE_HAS_CUDNN) && ROUNDPIPE_HAS_CUDNN

namespace cu = roundpipe::cu;
using roundpipe::AttentionShape;
using roundpipe::Bytes;
using roundpipe::DeviceBytes;
using roundpipe::DeviceId;
using roundpipe::DeviceTensor;
using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::test::AttentionRun;
using roundpipe::test::cudnn;
using roundpipe::test::DeviceValues;
using roundpipe::test::error_of;
using roundpipe::test::keys_shape;
using roundpipe::test::queries_shape;
using roundpipe::test::with_type;
using roundpipe::test::with_window;

namespace {

DeviceId const device(0);

/// Large enough for both passes, with any options.
cu::DeviceMemory scratch_for(AttentionShape const& s, cu::AttentionOptions options) {
  return cu::DeviceMemory(device,
                          std::max(cu::attention_scratch_bytes(s, options),
                                   cu::detail::cudnn_scratch_bytes(s, options)));
}
bool forward(AttentionRun const& r, DeviceBytes scratch, cu::AttentionOptions options = {}) {
  return cudnn().forward(r.stream, device, scratch, r.s, options, r.out, r.lse, r.q, r.k, r.v);
}
bool backward(AttentionRun const& r, DeviceBytes scratch, cu::AttentionOptions options) {
  return cudnn().backward(r.stream,
                          device,
                          scratch,
                          r.s,
                          options,
                          r.dq,
                          r.dk,
                          r.dv,
                          r.dout,
                          r.q,
                          r.k,
                          r.v,
                          r.out,
                          r.lse);
}
/// 0 when cuDNN has no plan, or none within its promised scratch.
Bytes workspace(AttentionShape const& s, cu::AttentionOptions options) {
  return cudnn().backward_workspace_bytes(device, s, options);
}
/// Whether cuDNN computes both passes.
bool compute(AttentionRun const& run, cu::AttentionOptions options) {
  auto const scratch = scratch_for(run.s, options);
  bool const done =
      forward(run, scratch.bytes(), options) && backward(run, scratch.bytes(), options);
  run.stream.sync();
  return done;
}

// rows, length, heads, kv_heads, head_dim
constexpr AttentionShape usual_shapes[] = {{2, 512, 8, 2, 128},
                                           {1, 1024, 16, 8, 128},
                                           {2, 512, 8, 8, 64},
                                           with_window({1, 1024, 16, 8, 128}, 256),
                                           with_window({2, 512, 8, 8, 64}, 100)};
/// With 32 MiB of scratch: slices of two rows and one, and of two key heads and one.
constexpr AttentionShape sliced_shapes[] = {{3, 512, 24, 4, 64}, {2, 1024, 15, 3, 64}};
constexpr std::uint32_t sliced_mib = 32;

}  // namespace

TEST_CASE("cuDNN computes the usual shapes within the promised scratch") {
  for (auto const type : {DType::bf16, DType::f16}) {
    for (auto const& shape : usual_shapes) {
      auto const s = with_type(shape, type);
      CAPTURE(name_of(type));
      CAPTURE(s.length);
      CAPTURE(s.head_dim);
      CAPTURE(s.window);
      AttentionRun const run(s);
      cu::DeviceMemory const scratch(device, cu::attention_scratch_bytes(s));
      CHECK(forward(run, scratch.bytes()));
      for (bool const deterministic : {false, true}) {
        cu::AttentionOptions const options{.deterministic = deterministic};
        CHECK(workspace(s, options) > 0);
        CHECK(backward(run, scratch.bytes(), options));
      }
      run.stream.sync();
    }
  }
}

TEST_CASE("slices run within the smaller scratch for which they are cut") {
  for (auto const& shape : sliced_shapes) {
    auto const s = with_type(shape, DType::bf16);
    for (bool const deterministic : {false, true}) {
      cu::AttentionOptions const options{.deterministic = deterministic, .scratch_mib = sliced_mib};
      CHECK(workspace(s, options) > 0);
    }
  }
}

TEST_CASE("results agree with sums in double, with a fixed order of sums and without") {
  for (auto const type : {DType::bf16, DType::f16}) {
    for (AttentionShape const& shape : {AttentionShape{1, 512, 2, 1, 128},
                                        AttentionShape{2, 512, 2, 2, 64},
                                        with_window({1, 512, 2, 1, 128}, 128),
                                        with_window({2, 512, 2, 2, 64}, 77),
                                        with_window({1, 512, 2, 2, 64}, 1)}) {
      AttentionRun const run(with_type(shape, type));
      auto const expected = run.reference();
      for (bool const deterministic : {false, true}) {
        CAPTURE(deterministic);
        REQUIRE(compute(run, {.deterministic = deterministic}));
        check_results(run, expected);
      }
    }
  }
}

TEST_CASE("in deterministic mode equal inputs give equal bits, also slice by slice") {
  auto const check = [](AttentionShape const& shape, cu::AttentionOptions options) {
    CAPTURE(shape.length);
    CAPTURE(shape.heads);
    AttentionRun const run(with_type(shape, DType::bf16));
    REQUIRE(compute(run, options));
    auto const bits = run.bits();
    for (int i = 0; i < 5; ++i) {
      REQUIRE(compute(run, options));
      CHECK(run.bits() == bits);
    }
  };
  for (auto const& shape : usual_shapes) {
    check(shape, {.deterministic = true});
  }
  for (auto const& shape : sliced_shapes) {
    cu::AttentionOptions const options{.deterministic = true, .scratch_mib = sliced_mib};
    auto const slice = cu::detail::attention_slice(with_type(shape, DType::bf16), options);
    CHECK((shape.rows % slice.rows != 0 || shape.kv_heads % slice.kv_heads != 0));
    check(shape, options);
  }
}

TEST_CASE("a backward runs in its plan's workspace, and a smaller one is an error") {
  auto const s = with_type(usual_shapes[0], DType::bf16);
  AttentionRun const run(s);
  for (bool const deterministic : {false, true}) {
    cu::AttentionOptions const options{.deterministic = deterministic};
    auto const slice = cu::detail::attention_slice(s, options);
    REQUIRE((slice.rows == s.rows && slice.kv_heads == s.kv_heads));  // all slices share one plan
    REQUIRE(compute(run, options));
    auto const bits = run.bits();
    auto const bytes = workspace(s, options);
    REQUIRE(bytes > 0);
    cu::DeviceMemory const scratch(device, bytes);
    auto const error =
        error_of([&] { (void)backward(run, scratch.bytes().subspan(0, bytes - 1), options); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(run.bits() == bits);
    CHECK(backward(run, scratch.bytes(), options));
    if (deterministic) {
      CHECK(run.bits() == bits);
    }
    run.stream.sync();
  }
}

TEST_CASE("inputs that cuDNN does not compute are refused, and nothing is enqueued") {
  auto const refused = [](AttentionShape const& s, cu::AttentionOptions options, bool forward_too) {
    CAPTURE(name_of(s.dtype));
    CAPTURE(s.heads);
    CAPTURE(s.head_dim);
    AttentionRun const run(s);
    auto const poison = run.bits();
    auto const scratch = scratch_for(s, options);
    if (forward_too) {
      CHECK_FALSE(forward(run, scratch.bytes()));
    }
    CHECK_FALSE(backward(run, scratch.bytes(), options));
    CHECK(workspace(s, options) == 0);
    CHECK(run.stream.is_done());
    CHECK(run.bits() == poison);
  };
  for (bool const deterministic : {false, true}) {
    cu::AttentionOptions const options{.deterministic = deterministic};
    refused({1, 128, 2, 1, 64, DType::f32}, options, true);
    for (auto const type : {DType::bf16, DType::f16}) {
      refused({1, 128, 2, 1, 12, type}, options, true);  // rows of 24 bytes
    }
    // No slice holds the 16 query heads of one key head.
    cu::AttentionOptions const small{.deterministic = deterministic, .scratch_mib = 0};
    refused({1, 256, 16, 1, 64, DType::bf16}, small, false);
  }
}

TEST_CASE("tensors that do not begin at a multiple of 16 bytes are refused") {
  AttentionShape const s{1, 128, 2, 1, 64, DType::bf16};
  cu::AttentionOptions const options{};
  AttentionRun const run(s);
  REQUIRE(compute(run, options));
  auto const bits = run.bits();
  auto const scratch = scratch_for(s, options);
  DeviceValues const queries(queries_shape(s), s.dtype, run.host_q, 8);
  DeviceValues const keys(keys_shape(s), s.dtype, run.host_k, 2);
  auto const forward_of =
      [&](DeviceTensor const& out, DeviceTensor const& q, DeviceTensor const& k) {
        return cudnn().forward(
            run.stream, device, scratch.bytes(), s, options, out, run.lse, q, k, run.v);
      };
  auto const backward_to = [&](DeviceTensor const& dq, DeviceTensor const& dv) {
    return cudnn().backward(run.stream,
                            device,
                            scratch.bytes(),
                            s,
                            options,
                            dq,
                            run.dk,
                            dv,
                            run.dout,
                            run.q,
                            run.k,
                            run.v,
                            run.out,
                            run.lse);
  };
  CHECK_FALSE(forward_of(queries, run.q, run.k));
  CHECK_FALSE(forward_of(run.out, queries, run.k));
  CHECK_FALSE(forward_of(run.out, run.q, keys));
  CHECK_FALSE(backward_to(queries, run.dv));
  CHECK_FALSE(backward_to(run.dq, keys));
  CHECK(run.stream.is_done());
  CHECK(run.bits() == bits);
  CHECK(forward_of(run.out, run.q, run.k));
  CHECK(backward_to(run.dq, run.dv));
  run.stream.sync();
}

TEST_CASE("several threads may call cuDNN's attention at once, each with its own stream") {
  // A shape that no other test has planned.
  AttentionShape const s{1, 640, 4, 2, 64, DType::bf16};
  cu::AttentionOptions const options{};
  std::vector<std::unique_ptr<AttentionRun>> runs;
  for (int i = 0; i < 4; ++i) {
    runs.push_back(std::make_unique<AttentionRun>(s));
  }
  std::vector<std::future<bool>> computed;
  for (auto const& run : runs) {
    computed.push_back(std::async(std::launch::async, [&] { return compute(*run, options); }));
  }
  for (auto& one : computed) {
    CHECK(one.get());
  }
  for (auto const& run : runs) {
    auto const together = run->bits();
    REQUIRE(compute(*run, options));
    CHECK(run->bits() == together);
  }
}

#else

// The main function requires a test case, and a skipped one makes the program skipped.
TEST_CASE("cuDNN's attention: this program is built without cuDNN" * doctest::skip()) {}

#endif
