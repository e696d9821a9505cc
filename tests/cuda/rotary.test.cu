// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/cuda/kernels/partial_sums.cuh>
#include <roundpipe/cuda/kernels/rotary.cuh>
#include <roundpipe/cuda/kernels/rotary_backward.cuh>
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
using roundpipe::DeviceTensor;
using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::RotaryOptions;
using roundpipe::Shape;
using roundpipe::size_of;
using roundpipe::test::DeviceValues;
using roundpipe::test::error_of;
using roundpipe::test::PoisonedScratch;
using roundpipe::test::random_values;
using roundpipe::test::relative_error;
using roundpipe::test::tolerance;
using roundpipe::test::Values;

namespace {

constexpr RotaryOptions options{1e6, 1e-3};

/// Heads with odd halves, heads that fill a team of lanes, and the largest heads; and a position so
/// far away that its angle needs more digits than a float has.
Shape const all_shapes[] = {{2, 3, 5, 2},
                            {1, 9, 3, 14},
                            {2, 70, 3, 64},
                            {1, 5, 7, 80},
                            {2, 33, 4, 128},
                            {1, 3, 2, 256},
                            {1, 2, 3, 512},
                            {1, 30000, 1, 4}};

std::size_t extent(Shape const& shape, std::size_t i) {
  return static_cast<std::size_t>(shape[i]);
}

struct Operands {
  Operands(Shape const& s, DType storage, DType parameter, Bytes offset = 0)
      : shape(s),
        x_values(random_values(s.size(), storage)),
        dy_values(random_values(s.size(), storage)),
        gain_values(random_values(extent(s, 3), parameter)),
        sum_values(random_values(extent(s, 3), DType::f32)),
        x(s, storage, x_values, offset),
        dy(s, storage, dy_values, offset),
        gain({s[3]}, parameter, gain_values, offset),
        dgain({s[3]}, DType::f32, sum_values),
        y(s, storage, offset),
        scratch(cu::detail::partials_bytes(s[0] * s[1] * s[2], s[3])) {}

  /// \p v rotated by its angles, or back.
  [[nodiscard]] Values turn(Values const& v,
                            double direction,
                            RotaryOptions const& rotation = options) const {
    return roundpipe::test::turned(
        v, extent(shape, 1), extent(shape, 2), extent(shape, 3), rotation, direction);
  }

  Shape shape;
  Values x_values;
  Values dy_values;
  Values gain_values;
  Values sum_values;
  DeviceValues x;
  DeviceValues dy;
  DeviceValues gain;
  DeviceValues dgain;
  DeviceValues y;
  PoisonedScratch scratch;
};

}  // namespace

TEST_CASE("a rotation agrees with plain loops, with a norm before it and without") {
  cu::Stream const stream;
  for (auto const& types : roundpipe::test::element_types) {
    for (auto const& shape : all_shapes) {
      for (Bytes const offset : {Bytes{0}, size_of(DType::f32)}) {
        INFO(std::string(name_of(types.storage)), " ", to_string(shape), " ", offset);
        Operands const o(shape, types.storage, types.parameter, offset);
        cu::rotary(stream, o.y, o.x, absent, options);
        CHECK(relative_error(o.y.values(), o.turn(o.x_values, 1)) < tolerance(types.storage));
        cu::rotary(stream, o.y, o.x, o.gain, options);
        auto const normed = roundpipe::test::norm_of(o.x_values, o.gain_values, options.epsilon);
        CHECK(relative_error(o.y.values(), o.turn(normed, 1)) < tolerance(types.storage));
      }
    }
  }
}

TEST_CASE("a rotation's gradients agree with plain loops, with a norm before it and without") {
  cu::Stream const stream;
  for (auto const& types : roundpipe::test::element_types) {
    for (auto const& shape : all_shapes) {
      for (Bytes const offset : {Bytes{0}, size_of(DType::f32)}) {
        INFO(std::string(name_of(types.storage)), " ", to_string(shape), " ", offset);
        Operands const o(shape, types.storage, types.parameter, offset);
        auto const back = o.turn(o.dy_values, -1);
        cu::rotary_backward(stream, {}, o.y, o.dgain, o.dy, absent, absent, options);
        CHECK(relative_error(o.y.values(), back) < tolerance(types.storage));
        CHECK(o.dgain.values() == o.sum_values);
        cu::rotary_backward(stream, o.scratch, o.y, o.dgain, o.dy, o.x, o.gain, options);
        auto d = roundpipe::test::norm_gradients(back, o.x_values, o.gain_values, options.epsilon);
        for (std::size_t i = 0; i < d.gain.size(); ++i) {
          d.gain[i] += o.sum_values[i];
        }
        CHECK(relative_error(o.y.values(), d.x) < tolerance(types.storage));
        CHECK(relative_error(o.dgain.values(), d.gain) < 1e-5);
      }
    }
  }
}

TEST_CASE("a rotation and its gradients may stretch frequencies and amplify") {
  cu::Stream const stream;
  roundpipe::RotaryBlend const blends[] = {
      {.factor = 4, .kept = 0},
      {.factor = 8, .kept = -1.0 / 3, .kept_by_frequency = 434.6},
      {.factor = 4, .kept = 1.25, .kept_by_pair = -0.0625, .amplitude = 1.138}};
  for (auto const& blend : blends) {
    auto rotation = options;
    rotation.blend = blend;
    for (auto const type : {DType::f32, DType::bf16}) {
      for (auto const& shape : all_shapes) {
        INFO(std::string(name_of(type)), " ", to_string(shape), " ", blend.factor);
        Operands const o(shape, type, type);
        cu::rotary(stream, o.y, o.x, absent, rotation);
        CHECK(relative_error(o.y.values(), o.turn(o.x_values, 1, rotation)) < tolerance(type));
        cu::rotary(stream, o.y, o.x, o.gain, rotation);
        auto const normed = roundpipe::test::norm_of(o.x_values, o.gain_values, options.epsilon);
        CHECK(relative_error(o.y.values(), o.turn(normed, 1, rotation)) < tolerance(type));

        auto const back = o.turn(o.dy_values, -1, rotation);
        cu::rotary_backward(stream, {}, o.y, absent, o.dy, absent, absent, rotation);
        CHECK(relative_error(o.y.values(), back) < tolerance(type));
        cu::rotary_backward(stream, o.scratch, o.y, o.dgain, o.dy, o.x, o.gain, rotation);
        auto d = roundpipe::test::norm_gradients(back, o.x_values, o.gain_values, options.epsilon);
        for (std::size_t i = 0; i < d.gain.size(); ++i) {
          d.gain[i] += o.sum_values[i];
        }
        CHECK(relative_error(o.y.values(), d.x) < tolerance(type));
        CHECK(relative_error(o.dgain.values(), d.gain) < 1e-5);
      }
    }
  }
}

TEST_CASE(
    "a rotation may be in place, the gradient of its gain may be absent, and it repeats its bits") {
  cu::Stream const stream;
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    for (auto const& shape : {Shape{2, 1300, 3, 128}, Shape{3, 7, 5, 14}}) {
      INFO(std::string(name_of(type)), " ", to_string(shape));
      Operands const o(shape, type, type);
      for (DeviceTensor const& gain : {o.gain.tensor(), absent}) {
        DeviceValues const x(shape, type, o.x_values);
        cu::rotary(stream, o.y, o.x, gain, options);
        cu::rotary(stream, x, x, gain, options);
        CHECK(x.bits() == o.y.bits());

        DeviceValues const sum({shape[3]}, DType::f32, o.sum_values);
        DeviceValues const again({shape[3]}, DType::f32, o.sum_values);
        DeviceValues const dy(shape, type, o.dy_values);
        DeviceValues const alone(shape, type);
        cu::rotary_backward(stream, o.scratch, o.y, sum, o.dy, o.x, gain, options);
        cu::rotary_backward(stream, o.scratch, dy, again, dy, o.x, gain, options);
        cu::rotary_backward(stream, {}, alone, absent, o.dy, o.x, gain, options);
        CHECK(dy.bits() == o.y.bits());
        CHECK(alone.bits() == o.y.bits());
        CHECK(sum.bits() == again.bits());
      }
    }
  }
}

TEST_CASE("a rotation refuses unsupported types and heads, and too little scratch") {
  cu::Stream const stream;
  Shape const shape{1, 2, 3, 4};
  Operands const o(shape, DType::f32, DType::f32);
  DeviceValues const wide(shape, DType::f64);
  auto const error = error_of([&] { cu::rotary(stream, wide, o.x, absent, options); });
  CHECK(error.code() == Errc::unsupported);
  CHECK(error.message().find("rotary: ") == 0);
  CHECK(error_of([&] {
          cu::rotary_backward(stream, {}, o.y, o.dgain, o.dy, o.x, o.gain, options);
        }).code() == Errc::invalid_argument);
  Operands const large({1, 1, 1, 514}, DType::f32, DType::f32);
  auto const too_large = error_of([&] { cu::rotary(stream, large.y, large.x, absent, options); });
  CHECK(too_large.code() == Errc::unsupported);
  CHECK(too_large.message().find("512 elements, not of 514") != std::string::npos);
}
