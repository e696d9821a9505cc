// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/cuda/kernels/bias.cuh>
#include <support/device_values.hpp>
#include <support/element_oracle.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
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

/// Less than a pack, a strip and a block, and more than each; more rows than one block has; more
/// strips than there are blocks of sums.
constexpr RowExtents all_extents[] = {{3, 1},
                                      {1, 7},
                                      {9, 100},
                                      {64, 256},
                                      {65, 264},
                                      {1100, 16},
                                      {70'000, 24},
                                      {4500, 129},
                                      {600, 4096},
                                      {2, 20'000},
                                      {3, 300'000}};

struct Operands {
  Operands(RowExtents e, DType storage, DType parameter, Bytes offset = 0)
      : extents(e),
        c_values(random_values(size(), storage)),
        bias_values(random_values(static_cast<std::size_t>(e.width), parameter)),
        sum_values(random_values(static_cast<std::size_t>(e.width), DType::f32)),
        c({e.rows, e.width}, storage, c_values, offset),
        bias({e.width}, parameter, bias_values, offset),
        sum({e.width}, DType::f32, sum_values),
        y({e.rows, e.width}, storage, offset),
        scratch(cu::detail::bias_partials_bytes(e.rows, e.width)) {}

  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(extents.rows * extents.width);
  }
  /// factor c + the bias of its column.
  [[nodiscard]] Values biased(double factor) const {
    Values values(size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = factor * c_values[i] + bias_values[i % bias_values.size()];
    }
    return values;
  }
  /// The sums of the columns of c, added to those before.
  [[nodiscard]] Values summed() const {
    auto values = sum_values;
    for (std::size_t i = 0; i < c_values.size(); ++i) {
      values[i % values.size()] += c_values[i];
    }
    return values;
  }

  RowExtents extents;
  Values c_values;
  Values bias_values;
  Values sum_values;
  DeviceValues c;
  DeviceValues bias;
  DeviceValues sum;
  DeviceValues y;
  PoisonedScratch scratch;
};

}  // namespace

TEST_CASE("a bias and its gradient agree with plain loops for all types, widths and alignments") {
  cu::Stream const stream;
  for (auto const& types : roundpipe::test::element_types) {
    for (auto const& e : all_extents) {
      for (Bytes const offset : {Bytes{0}, size_of(DType::f32)}) {
        INFO(std::string(name_of(types.storage)), " ", e.rows, " ", e.width, " ", offset);
        Operands const o(e, types.storage, types.parameter, offset);
        cu::add_bias(stream, e, o.y, o.bias, absent);
        CHECK(relative_error(o.y.values(), o.biased(0)) < tolerance(types.storage));
        cu::add_bias(stream, e, o.y, o.bias, o.c);
        CHECK(relative_error(o.y.values(), o.biased(1)) < tolerance(types.storage));
        cu::bias_gradient(stream, o.scratch, e, o.sum, o.c);
        CHECK(relative_error(o.sum.values(), o.summed()) < 1e-5);
      }
    }
  }
}

TEST_CASE("a bias may be added in place, and its gradient repeats its bits") {
  cu::Stream const stream;
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    for (RowExtents const e : {RowExtents{530, 129}, RowExtents{5300, 640}}) {
      INFO(std::string(name_of(type)), " ", e.width);
      Operands const o(e, type, type);
      DeviceValues const again({e.width}, DType::f32, o.sum_values);
      cu::bias_gradient(stream, o.scratch, e, o.sum, o.c);
      cu::bias_gradient(stream, o.scratch, e, again, o.c);
      CHECK(o.sum.bits() == again.bits());
      cu::add_bias(stream, e, o.y, o.bias, o.c);
      cu::add_bias(stream, e, o.c, o.bias, o.c);
      CHECK(o.c.bits() == o.y.bits());
    }
  }
}

TEST_CASE("a bias refuses unsupported types, and its gradient too little scratch") {
  cu::Stream const stream;
  RowExtents const e{4, 6};
  Operands const o(e, DType::f32, DType::f32);
  DeviceValues const wide({e.rows, e.width}, DType::f64);
  DeviceValues const wide_sum({e.width}, DType::f64);
  auto const error = error_of([&] { cu::add_bias(stream, e, wide, o.bias, absent); });
  CHECK(error.code() == Errc::unsupported);
  CHECK(error.message().find("add_bias: ") == 0);
  CHECK(error_of([&] { cu::bias_gradient(stream, o.scratch, e, wide_sum, o.c); }).code() ==
        Errc::unsupported);
  CHECK(error_of([&] { cu::bias_gradient(stream, {}, e, o.sum, o.c); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("a bias of no rows does nothing") {
  cu::Stream const stream;
  Operands const o({0, 6}, DType::f32, DType::f32);
  cu::add_bias(stream, {0, 6}, o.y, o.bias, absent);
  cu::bias_gradient(stream, o.scratch, {0, 6}, o.sum, o.c);
  CHECK(o.sum.values() == o.sum_values);
}
