// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/cuda/kernels/partial_sums.cuh>
#include <roundpipe/cuda/kernels/rms_norm.cuh>
#include <roundpipe/cuda/kernels/rms_norm_backward.cuh>
#include <support/device_values.hpp>
#include <support/element_oracle.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace cu = roundpipe::cu;
using roundpipe::absent;
using roundpipe::Bytes;
using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::size_of;
using roundpipe::nn::RowExtents;
using roundpipe::test::DeviceValues;
using roundpipe::test::error_of;
using roundpipe::test::PoisonedScratch;
using roundpipe::test::random_values;
using roundpipe::test::relative_error;
using roundpipe::test::tolerance;
using roundpipe::test::Values;

namespace {

constexpr double epsilon = 1e-3;

/// Odd widths; some fit into a warp, a block or a block's registers, some do not.
constexpr RowExtents all_extents[] = {{3, 1},
                                      {5, 7},
                                      {9, 100},
                                      {1100, 16},
                                      {4500, 129},
                                      {3, 512},
                                      {600, 520},
                                      {5, 4096},
                                      {2, 8200},
                                      {3, 20000}};

/// The operands of a norm and of its gradient, on the host and on the device.
struct Operands {
  Operands(RowExtents e, DType storage, DType parameter, Bytes offset = 0)
      : extents(e),
        x_values(random_values(size(), storage)),
        dy_values(random_values(size(), storage)),
        c_values(random_values(size(), storage)),
        gain_values(random_values(static_cast<std::size_t>(e.width), parameter)),
        sum_values(random_values(static_cast<std::size_t>(e.width), DType::f32)),
        x({e.rows, e.width}, storage, x_values, offset),
        dy({e.rows, e.width}, storage, dy_values, offset),
        c({e.rows, e.width}, storage, c_values, offset),
        gain({e.width}, parameter, gain_values, offset),
        dgain({e.width}, DType::f32, sum_values),
        y({e.rows, e.width}, storage, offset),
        scratch(cu::detail::partials_bytes(e.rows, e.width)) {}

  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(extents.rows * extents.width);
  }

  RowExtents extents;
  Values x_values;
  Values dy_values;
  Values c_values;
  Values gain_values;
  Values sum_values;
  DeviceValues x;
  DeviceValues dy;
  DeviceValues c;
  DeviceValues gain;
  DeviceValues dgain;
  DeviceValues y;
  PoisonedScratch scratch;
};

Values sum_of(Values a, Values const& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] += b[i];
  }
  return a;
}

}  // namespace

TEST_CASE("a norm agrees with plain loops for all types, widths and alignments") {
  cu::Stream const stream;
  for (auto const& types : roundpipe::test::element_types) {
    for (auto const& e : all_extents) {
      for (Bytes const offset : {Bytes{0}, size_of(DType::f32)}) {
        INFO(std::string(name_of(types.storage)), " ", e.rows, " ", e.width, " ", offset);
        Operands const o(e, types.storage, types.parameter, offset);
        cu::rms_norm(stream, e, o.y, o.x, o.gain, epsilon);
        auto const expected = roundpipe::test::norm_of(o.x_values, o.gain_values, epsilon);
        CHECK(relative_error(o.y.values(), expected) < tolerance(types.storage));
      }
    }
  }
}

TEST_CASE("a norm's gradients agree with plain loops for all types, widths and alignments") {
  cu::Stream const stream;
  for (auto const& types : roundpipe::test::element_types) {
    for (auto const& e : all_extents) {
      for (Bytes const offset : {Bytes{0}, size_of(DType::f32)}) {
        INFO(std::string(name_of(types.storage)), " ", e.rows, " ", e.width, " ", offset);
        Operands const o(e, types.storage, types.parameter, offset);
        cu::rms_norm_backward(stream, o.scratch, e, o.y, o.dgain, o.dy, o.x, o.gain, o.c, epsilon);
        auto const d =
            roundpipe::test::norm_gradients(o.dy_values, o.x_values, o.gain_values, epsilon);
        CHECK(relative_error(o.y.values(), sum_of(d.x, o.c_values)) < tolerance(types.storage));
        CHECK(relative_error(o.dgain.values(), sum_of(d.gain, o.sum_values)) < 1e-5);
      }
    }
  }
}

TEST_CASE("a norm of tensors of several types is rounded to the result's type") {
  cu::Stream const stream;
  RowExtents const e{5, 96};
  Operands const o(e, DType::bf16, DType::f16);
  DeviceValues const wide({e.rows, e.width}, DType::f32);
  cu::rms_norm(stream, e, wide, o.x, o.gain, epsilon);
  auto const expected = roundpipe::test::norm_of(o.x_values, o.gain_values, epsilon);
  CHECK(relative_error(wide.values(), expected) < tolerance(DType::f32));
}

TEST_CASE("absent outputs of a norm's gradient do not change the bits of the others") {
  cu::Stream const stream;
  for (RowExtents const e : {RowExtents{700, 256}, RowExtents{700, 1024}, RowExtents{3, 20000}}) {
    INFO(e.width);
    Operands const o(e, DType::bf16, DType::bf16);
    DeviceValues const alone({e.rows, e.width}, DType::bf16);
    DeviceValues const sum_alone({e.width}, DType::f32, o.sum_values);
    cu::rms_norm_backward(stream, o.scratch, e, o.y, o.dgain, o.dy, o.x, o.gain, o.c, epsilon);
    cu::rms_norm_backward(stream, {}, e, alone, absent, o.dy, o.x, o.gain, o.c, epsilon);
    cu::rms_norm_backward(stream, o.scratch, e, absent, sum_alone, o.dy, o.x, o.gain, o.c, epsilon);
    CHECK(o.y.bits() == alone.bits());
    CHECK(o.dgain.bits() == sum_alone.bits());
    cu::rms_norm_backward(stream, {}, e, absent, absent, o.dy, o.x, o.gain, o.c, epsilon);

    cu::rms_norm_backward(stream, {}, e, alone, absent, o.dy, o.x, o.gain, absent, epsilon);
    auto const d = roundpipe::test::norm_gradients(o.dy_values, o.x_values, o.gain_values, epsilon);
    CHECK(relative_error(alone.values(), d.x) < tolerance(DType::bf16));
  }
}

TEST_CASE("a norm's gradient may overwrite its inputs, and repeats its bits") {
  cu::Stream const stream;
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    for (RowExtents const e : {RowExtents{530, 129}, RowExtents{530, 640}, RowExtents{2, 20000}}) {
      INFO(std::string(name_of(type)), " ", e.width);
      Operands const o(e, type, type);
      DeviceValues const sum({e.width}, DType::f32, o.sum_values);
      DeviceValues const dy({e.rows, e.width}, type, o.dy_values);
      DeviceValues const c({e.rows, e.width}, type, o.c_values);
      cu::rms_norm_backward(stream, o.scratch, e, o.y, o.dgain, o.dy, o.x, o.gain, o.c, epsilon);
      cu::rms_norm_backward(stream, o.scratch, e, dy, sum, dy, o.x, o.gain, o.c, epsilon);
      CHECK(dy.bits() == o.y.bits());
      CHECK(sum.bits() == o.dgain.bits());
      cu::rms_norm_backward(stream, {}, e, c, absent, o.dy, o.x, o.gain, c, epsilon);
      CHECK(c.bits() == o.y.bits());
    }
  }
}

TEST_CASE("a norm refuses unsupported types, and too little scratch") {
  cu::Stream const stream;
  RowExtents const e{4, 6};
  Operands const o(e, DType::f32, DType::f32);
  DeviceValues const wide({e.rows, e.width}, DType::f64);
  DeviceValues const wide_sum({e.width}, DType::f64);
  auto const error = error_of([&] { cu::rms_norm(stream, e, wide, o.x, o.gain, epsilon); });
  CHECK(error.code() == Errc::unsupported);
  CHECK(error.message().find("rms_norm: ") == 0);
  CHECK(error.message().find("f64, f32, f32") != std::string::npos);
  CHECK(error_of([&] {
          cu::rms_norm_backward(
              stream, o.scratch, e, o.y, wide_sum, o.dy, o.x, o.gain, absent, epsilon);
        }).code() == Errc::unsupported);
  CHECK(error_of([&] {
          cu::rms_norm_backward(stream, {}, e, o.y, o.dgain, o.dy, o.x, o.gain, absent, epsilon);
        }).code() == Errc::invalid_argument);
}

TEST_CASE("a norm of no vectors does nothing") {
  cu::Stream const stream;
  Operands const o({0, 6}, DType::f32, DType::f32);
  cu::rms_norm(stream, {0, 6}, o.y, o.x, o.gain, epsilon);
  cu::rms_norm_backward(
      stream, o.scratch, {0, 6}, o.y, o.dgain, o.dy, o.x, o.gain, absent, epsilon);
  CHECK(o.dgain.values() == o.sum_values);
}
