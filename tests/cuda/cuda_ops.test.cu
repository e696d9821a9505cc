// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/ops/cuda_ops.cuh>
#include <support/cuda_resources.hpp>
#include <support/device_values.hpp>
#include <support/element_oracle.hpp>
#include <support/error_of.hpp>

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace roundpipe;
using cu::CudaOps;
using test::device_indices;
using test::DeviceValues;
using test::error_of;
using test::PoisonedScratch;
using test::random_values;

cu::CudaBackendOptions one_device() {
  cu::CudaBackendOptions options;
  options.devices = {DeviceId(0)};
  options.device_memory_bytes = 64_MiB;
  options.resources = test::shared_resources();
  return options;
}

DeviceValues random(Shape const& shape, DType type = DType::f32) {
  return {shape, type, random_values(shape.size(), type)};
}

AttentionShape const attention_shape{2, 3, 4, 2, 8, DType::bf16};

/// Enough for all calls of the tests.
Bytes scratch_bytes() {
  return std::max({CudaOps::linear_scratch_bytes(),
                   CudaOps::bias_scratch_bytes(6, 64),
                   CudaOps::norm_scratch_bytes(24, 64),
                   CudaOps::attention_scratch_bytes(attention_shape),
                   CudaOps::embedding_scratch_bytes(6, 10, 64)});
}

struct Fixture {
  cu::CudaBackend backend{one_device()};
  cu::CudaBackend::Stream stream{backend.make_stream(DeviceId(0), LaneKind::compute)};
  PoisonedScratch scratch{scratch_bytes()};
  CudaOps ops{stream, scratch};
};

void check_misfit(std::function<void()> const& f, std::string const& words) {
  auto const error = error_of(f);
  INFO(error.message());
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message().find(words) != std::string::npos);
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "every operation only enqueues: a graph captures it") {
  auto const type = DType::bf16;
  Shape const q_shape{2, 3, 4, 8};
  Shape const k_shape{2, 3, 2, 8};
  auto const x = random({6, 64}, type);
  auto const gain = random({64}, type);
  auto const weight = random({64, 64}, type);
  auto const dy = random({6, 64}, type);
  auto const q = random(q_shape, type);
  auto const k = random(k_shape, type);
  auto const v = random(k_shape, type);
  auto const head_gain = random({8}, type);
  auto const table = random({10, 64}, type);
  auto const logits = random({6, 64});
  auto const tokens = device_indices({3, 1, 3, 9, 0, 3});
  DropoutOptions const dropout{0.5, {1, 2, 3, 4, 5}};
  // Each result of one operation; sums begin at 0.
  std::vector<DeviceValues> results;
  auto const reset = [&] {
    results.clear();
    for (int i = 0; i < 5; ++i) {
      results.emplace_back(Shape{6, 64}, type);
    }
    results.emplace_back(q_shape, type);  // 5
    results.emplace_back(q_shape, type);
    results.emplace_back(q_shape, type);  // 7
    results.emplace_back(k_shape, type);
    results.emplace_back(k_shape, type);
    results.emplace_back(Shape{2, 4, 3}, DType::f32);  // 10
    results.emplace_back(Shape{6}, DType::f32);
    results.emplace_back(Shape{6}, DType::f32);
    results.emplace_back(Shape{6, 64}, DType::f32);  // 13
    results.emplace_back(Shape{64}, DType::f32, std::vector<double>(64));
    results.emplace_back(Shape{8}, DType::f32, std::vector<double>(8));
    results.emplace_back(Shape{64, 64}, DType::f32, std::vector<double>(64 * 64));
    results.emplace_back(Shape{10, 64}, DType::f32, std::vector<double>(640));
    results.emplace_back(Shape{1}, DType::f64);  // 18
    results.emplace_back(Shape{6, 64}, type);
    results.emplace_back(Shape{64}, DType::f32, std::vector<double>(64));
    results.emplace_back(q_shape, type);  // 21
    results.emplace_back(Shape{2, 4, 3}, DType::f32);
    results.emplace_back(q_shape, type);
    results.emplace_back(k_shape, type);
    results.emplace_back(k_shape, type);  // 25
    cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  };
  auto const enqueue = [&] {
    auto const& r = results;
    ops.linear(r[0], x, weight);
    ops.linear_input_gradient(r[1], dy, weight, x);
    ops.linear_weight_gradient(r[16], dy, x);
    ops.rms_norm(r[2], x, gain, 1e-6);
    ops.rms_norm_backward(r[3], r[14], dy, x, gain, r[2], 1e-6);
    ops.rotary(r[5], q, head_gain, {});
    ops.attention(r[6], r[10], r[5], k, v);
    ops.attention_backward(r[7], r[8], r[9], q, r[5], k, v, r[6], r[10]);
    ops.rotary_backward(r[7], r[15], r[7], q, head_gain, {});
    ops.add_bias(r[19], gain, x);
    ops.bias_gradient(r[20], dy);
    ops.attention(r[21], r[22], q, k, v, 2);
    ops.attention_backward(r[23], r[24], r[25], q, q, k, v, r[21], r[22], 2);
    ops.swiglu(r[4], x, dy);
    ops.swiglu_backward(r[0], r[1], r[2], dy, x, r[4]);
    ops.dropout(r[3], r[3], dy, dropout);
    ops.embedding(r[4], tokens, table);
    ops.embedding_backward(r[17], dy, tokens);
    ops.cross_entropy(r[11], r[12], logits, tokens, 9);
    ops.cross_entropy_backward(r[13], logits, r[12], tokens, 9, 0.5);
    ops.sum(r[18].tensor().as<double>(), r[11], 0.25);
  };
  auto const bits = [&] {
    std::vector<std::vector<std::byte>> all;
    for (auto const& result : results) {
      all.push_back(result.bits());
    }
    return all;
  };
  reset();
  enqueue();  // all choices and plans are made here
  stream.synchronize();
  auto const expected = bits();

  reset();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t program = nullptr;
  cu::check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal),
            "cudaStreamBeginCapture");
  enqueue();  // fails if an operation allocates, or waits for the device
  cu::check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  cu::check(cudaGraphInstantiate(&program, graph, 0), "cudaGraphInstantiate");
  CHECK(bits() != expected);
  cu::check(cudaGraphLaunch(program, stream.get()), "cudaGraphLaunch");
  stream.synchronize();
  CHECK(bits() == expected);
  cu::check(cudaGraphExecDestroy(program), "cudaGraphExecDestroy");
  cu::check(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

TEST_CASE_FIXTURE(Fixture, "absent sums of gradients cost nothing") {
  auto const x = random({4, 6});
  auto const tokens = device_indices({0, 1, 2, 3});
  ops.linear_weight_gradient(absent, x, x);
  ops.bias_gradient(absent, x);
  ops.embedding_backward(absent, x, tokens);
  ops.rms_norm_backward(absent, absent, x, x, random({6}), absent, 1e-5);
  stream.synchronize();
}

TEST_CASE("scratch does not grow when an argument shrinks") {
  std::int64_t const sizes[] = {0, 1, 7, 8, 511, 512, 513, 528, 529, 8192, 8193, 100'000};
  for (auto const a : sizes) {
    for (auto const b : sizes) {
      for (auto const c : {a, a + 1, 2 * a}) {
        CHECK(CudaOps::norm_scratch_bytes(a, b) <= CudaOps::norm_scratch_bytes(c, b));
        CHECK(CudaOps::norm_scratch_bytes(b, a) <= CudaOps::norm_scratch_bytes(b, c));
        CHECK(CudaOps::bias_scratch_bytes(a, b) <= CudaOps::bias_scratch_bytes(c, b));
        CHECK(CudaOps::bias_scratch_bytes(b, a) <= CudaOps::bias_scratch_bytes(b, c));
        CHECK(CudaOps::embedding_scratch_bytes(a, b, b) <=
              CudaOps::embedding_scratch_bytes(c, b, b));
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "operands that do not fit are refused when the operation is enqueued") {
  auto const x = random({4, 6});
  auto const w = random({3, 6});
  auto const y = random({4, 3});
  auto const gain = random({6});
  auto const two = random({2});
  auto const four = random({4});
  auto const narrow = random({3, 6}, DType::bf16);
  auto const tokens = device_indices({0, 1, 2, 3});
  check_misfit([&] { ops.linear(x, x, w); }, "linear: an operand must have 12 elements, not f32");
  check_misfit([&] { ops.linear(y, x, w, x); }, "12 elements, not f32[4, 6]");
  check_misfit([&] { ops.linear(y, tokens, w); }, "a floating tensor, not i32[4]");
  check_misfit([&] { ops.linear_input_gradient(y, y, w); }, "linear_input_gradient");
  check_misfit([&] { ops.linear_weight_gradient(narrow, y, x); }, "accumulation type");
  check_misfit([&] { ops.add_bias(x, w); }, "add_bias: an operand must have rows of 18");
  check_misfit([&] { ops.add_bias(x, gain, y); }, "24 elements, not f32[4, 3]");
  check_misfit([&] { ops.bias_gradient(narrow, x); }, "bias_gradient: an operand must have rows");
  check_misfit([&] { ops.bias_gradient(random({6}, DType::bf16), x); }, "accumulation type");
  check_misfit([&] { ops.rms_norm(x, x, w, 1e-5); }, "rms_norm: an operand must have rows of 18");
  check_misfit([&] { ops.rms_norm_backward(y, gain, x, x, gain, absent, 1e-5); }, "24 elements");
  auto const q = random({2, 3, 4, 2});
  auto const k = random({2, 3, 2, 2});
  auto const three = random({2, 3, 3, 2});
  auto const odd = random({2, 3, 4, 3});
  auto const lse = random({2, 4, 3});
  check_misfit([&] { ops.rotary(q, w, absent, {}); }, "[rows, length, heads, head_dim]");
  check_misfit([&] { ops.rotary(odd, odd, absent, {}); }, "head_dim must be even");
  check_misfit([&] { ops.rotary(q, q, gain, {}); }, "2 elements, not f32[6]");
  check_misfit([&] { ops.rotary_backward(q, gain, q, q, two, {}); }, "2 elements");
  check_misfit([&] { ops.rotary_backward(absent, absent, q, q, absent, {}); }, "no tensor");
  check_misfit([&] { ops.attention(q, lse, q, three, three); }, "keys must fit queries");
  check_misfit([&] { ops.attention(q, lse, q, k, k, -1); }, "at least one position");
  check_misfit([&] { ops.attention_backward(q, q, q, q, q, k, k, q, lse); }, "24 elements");
  check_misfit([&] { ops.swiglu(x, x, y); }, "swiglu: an operand must have 24 elements");
  check_misfit([&] { ops.swiglu_backward(x, x, x, x, x, y); }, "swiglu_backward: an operand");
  check_misfit([&] { ops.dropout(x, x, y, {0.1, {}}); }, "24 elements, not f32[4, 3]");
  check_misfit([&] { ops.dropout(x, x, absent, {1.0, {}}); }, "the rate must be in [0, 1)");
  check_misfit([&] { ops.embedding(x, gain, w); }, "indices must be 6 i32 values");
  check_misfit([&] { ops.embedding_backward(narrow, x, tokens); }, "accumulation type");
  check_misfit([&] { ops.cross_entropy(y, gain, y, tokens, 0); }, "4 elements, not f32[6]");
  check_misfit([&] { ops.cross_entropy(y, four, y, gain, 0); }, "4 i32 values, not f32[6]");
  check_misfit([&] { ops.cross_entropy_backward(x, y, four, tokens, 0, 1.0); }, "12 elements");
  check_misfit([&] { ops.sum({}, x, 1.0); }, "the total must be one number");
}
