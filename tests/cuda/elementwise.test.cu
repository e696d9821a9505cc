// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/cuda/kernels/dropout.cuh>
#include <roundpipe/cuda/kernels/philox.cuh>
#include <roundpipe/cuda/kernels/swiglu.cuh>
#include <support/device_values.hpp>
#include <support/element_oracle.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace cu = roundpipe::cu;
using roundpipe::absent;
using roundpipe::Bytes;
using roundpipe::DropoutOptions;
using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::RandomKey;
using roundpipe::Shape;
using roundpipe::size_of;
using roundpipe::test::DeviceValues;
using roundpipe::test::error_of;
using roundpipe::test::random_values;
using roundpipe::test::relative_error;
using roundpipe::test::rounded;
using roundpipe::test::tolerance;
using roundpipe::test::Values;

namespace {

constexpr std::int64_t all_sizes[] = {1, 7, 100, 129, 4096, 300'007};
constexpr DType all_types[] = {DType::f32, DType::bf16, DType::f16};
constexpr RandomKey key{0x123456789abcdefULL, 7, 6, 5, 4};

/// The words of blocks \p first to \p first + 63; each thread draws one block.
__global__ void draw_kernel(cu::detail::DerivedKey derived,
                            std::uint64_t first,
                            std::uint32_t* words) {
  auto const drawn = cu::detail::random_words(derived, first + threadIdx.x);
  for (unsigned i = 0; i < 4; ++i) {
    words[4 * threadIdx.x + i] = drawn[i];
  }
}

/// The operands of SwiGLU, on the host and on the device.
struct Operands {
  Operands(std::int64_t n, DType type, Bytes offset = 0)
      : gate_values(random_values(static_cast<std::size_t>(n), type)),
        up_values(random_values(static_cast<std::size_t>(n), type)),
        dy_values(random_values(static_cast<std::size_t>(n), type)),
        gate({n}, type, wide(gate_values, type), offset),
        up({n}, type, up_values, offset),
        dy({n}, type, dy_values, offset),
        y({n}, type, offset) {}

  /// Some values for which exp() or its inverse is infinite in f32.
  static Values const& wide(Values& values, DType type) {
    for (std::size_t i = 3; i < values.size(); i += 50) {
      values[i] = rounded(i % 100 == 3 ? -200 : 95, type);
    }
    return values;
  }

  Values gate_values;
  Values up_values;
  Values dy_values;
  DeviceValues gate;
  DeviceValues up;
  DeviceValues dy;
  DeviceValues y;
};

}  // namespace

TEST_CASE("kernels draw the same words as the host") {
  DeviceValues const words({256}, DType::i32);
  for (std::uint64_t const first : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 31}) {
    draw_kernel<<<1, 64>>>(cu::detail::DerivedKey(key),
                           first,
                           reinterpret_cast<std::uint32_t*>(words.tensor().device_pointer()));
    cu::check(cudaGetLastError(), "draw_kernel");
    auto const bytes = words.bits();
    for (std::size_t i = 0; i < 256; ++i) {
      std::uint32_t word = 0;
      std::memcpy(&word, &bytes[4 * i], 4);
      REQUIRE(word == roundpipe::random_word(key, 4 * first + i));
    }
  }
}

TEST_CASE("dropout drops, scales and adds like the host") {
  cu::Stream const stream;
  DropoutOptions const options{0.3, key};
  for (auto const type : all_types) {
    for (auto const n : all_sizes) {
      for (Bytes const offset : {Bytes{0}, size_of(DType::f32)}) {
        INFO(std::string(name_of(type)), " ", n, " ", offset);
        auto const size = static_cast<std::size_t>(n);
        auto const x_values = random_values(size, type);
        auto const c_values = random_values(size, type);
        DeviceValues const x({n}, type, x_values, offset);
        DeviceValues const c({n}, type, c_values, offset);
        DeviceValues const y({n}, type, offset);
        Values expected(size);
        for (std::size_t i = 0; i < size; ++i) {
          bool const drops = roundpipe::uniform(roundpipe::random_word(key, i)) < 0.3F;
          expected[i] = drops ? 0 : x_values[i] / 0.7;
        }
        cu::dropout(stream, y, x, absent, options);
        auto const dropped = y.values();
        bool same = true;
        for (std::size_t i = 0; i < size; ++i) {
          same = same && (dropped[i] == 0) == (expected[i] == 0);
        }
        CHECK(same);
        if (n > 1) {  // a single element may be dropped
          CHECK(relative_error(dropped, expected) < tolerance(type));
        }
        for (std::size_t i = 0; i < size; ++i) {
          expected[i] += c_values[i];
        }
        cu::dropout(stream, y, x, c, options);
        CHECK(relative_error(y.values(), expected) < tolerance(type));
        // over the addend, and in place
        cu::dropout(stream, c, x, c, options);
        CHECK(c.bits() == y.bits());
        cu::dropout(stream, y, x, absent, options);
        cu::dropout(stream, x, x, absent, options);
        CHECK(x.bits() == y.bits());
        cu::dropout(stream, y, c, absent, {0.0, key});
        CHECK(y.bits() == c.bits());
      }
    }
  }
}

TEST_CASE("SwiGLU and its gradients agree with plain loops") {
  cu::Stream const stream;
  for (auto const type : all_types) {
    for (auto const n : all_sizes) {
      for (Bytes const offset : {Bytes{0}, size_of(DType::f32)}) {
        INFO(std::string(name_of(type)), " ", n, " ", offset);
        Operands const o(n, type, offset);
        DeviceValues const dgate({n}, type, offset);
        DeviceValues const dup({n}, type, offset);
        DeviceValues const again({n}, type, offset);
        auto y = o.up_values;
        auto gate_gradient = o.dy_values;
        auto up_gradient = o.dy_values;
        for (std::size_t i = 0; i < y.size(); ++i) {
          auto const z = o.gate_values[i];
          auto const s = 1 / (1 + std::exp(-z));
          y[i] *= z * s;
          gate_gradient[i] *= o.up_values[i] * s * (1 + z * (1 - s));
          up_gradient[i] *= z * s;
        }
        cu::swiglu(stream, o.y, o.gate, o.up);
        CHECK(relative_error(o.y.values(), y) < tolerance(type));
        cu::swiglu_backward(stream, dgate, dup, again, o.dy, o.gate, o.up);
        CHECK(relative_error(again.values(), y) < tolerance(type));
        CHECK(relative_error(dgate.values(), gate_gradient) < tolerance(type));
        CHECK(relative_error(dup.values(), up_gradient) < tolerance(type));
        // dup in place of dy, y in place of gate
        cu::swiglu_backward(stream, dgate, o.dy, again, o.dy, o.gate, o.up);
        CHECK(o.dy.bits() == dup.bits());
        cu::swiglu(stream, o.gate, o.gate, o.up);
        CHECK(o.gate.bits() == o.y.bits());
      }
    }
  }
}

TEST_CASE("tensors of several types are read and written in their own types") {
  cu::Stream const stream;
  std::int64_t const n = 1003;
  Operands const o(n, DType::bf16);
  DeviceValues const wide({n}, DType::f32);
  DeviceValues const half({n}, DType::f16);
  cu::swiglu(stream, o.y, o.gate, o.up);
  cu::swiglu(stream, wide, o.gate, o.up);
  cu::dropout(stream, half, wide, o.y, {});
  auto expected = wide.values();
  CHECK(relative_error(o.y.values(), expected) < tolerance(DType::bf16));
  auto const more = o.y.values();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] += more[i];
  }
  CHECK(relative_error(half.values(), expected) < tolerance(DType::f16));
}

TEST_CASE("element-wise operations refuse unsupported types") {
  cu::Stream const stream;
  Operands const o(12, DType::f32);
  DeviceValues const wide({12}, DType::f64);
  auto const error = error_of([&] { cu::swiglu(stream, o.y, wide, o.up); });
  CHECK(error.code() == Errc::unsupported);
  CHECK(error.message().find("swiglu: ") == 0);
  CHECK(error.message().find("f32, f64, f32") != std::string::npos);
  CHECK(error_of([&] { cu::swiglu_backward(stream, o.y, o.y, o.y, wide, o.gate, o.up); }).code() ==
        Errc::unsupported);
  CHECK(error_of([&] { cu::dropout(stream, o.y, o.gate, wide, {}); }).code() == Errc::unsupported);
}
