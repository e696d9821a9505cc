// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/optim/sgd.hpp>

#include <roundpipe/core/error.hpp>
#include <support/optimizer_check.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace sgd_test {

namespace {

using roundpipe::DecayGroup;
using roundpipe::Error;
using roundpipe::HostSpan;
using roundpipe::LearningRate;
using roundpipe::Sgd;
using roundpipe::SgdOptions;
using roundpipe::UpdateContext;
using roundpipe::test::gradients;
using roundpipe::test::Parameter;

std::vector<SgdOptions> const kinds{
    {.rate = LearningRate::constant(0.05)},
    {.rate = LearningRate::constant(0.05), .weight_decay = 0.1},
    {.rate = LearningRate::constant(0.05), .momentum = 0.9, .weight_decay = 0.1},
    {.rate = LearningRate::constant(0.05), .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}};

}  // namespace

TEST_CASE("SGD follows a double-precision reference") {
  constexpr std::size_t size = 333;
  for (auto const& options : kinds) {
    for (auto const decay : {DecayGroup::decayed, DecayGroup::exempt}) {
      Sgd const sgd(options);
      Parameter parameter(size, sgd.state_arrays(), 5);
      std::vector<double> w(parameter.weights().begin(), parameter.weights().end());
      std::vector<double> u(size);
      for (std::uint64_t step = 1; step <= 30; ++step) {
        auto const gradient = gradients(size, step);
        parameter.update(sgd,
                         {.step = step, .gradient_factor = 0.5F, .parameter = {.decay = decay}},
                         gradient,
                         size);
        for (std::size_t i = 0; i < size; ++i) {
          auto const g = 0.5 * static_cast<double>(gradient[i]) +
                         (decay == DecayGroup::decayed ? options.weight_decay * w[i] : 0);
          u[i] = options.momentum * u[i] + g;
          w[i] -= options.rate(step) * (options.nesterov ? g + options.momentum * u[i] : u[i]);
        }
      }
      double worst = 0;
      for (std::size_t i = 0; i < size; ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(parameter.weights()[i]) - w[i]));
      }
      CHECK(worst < 3e-5);
    }
  }
}

TEST_CASE("SGD gives the same bits for every cut of a parameter") {
  for (auto const& options : kinds) {
    CHECK(roundpipe::test::parts_do_not_matter(Sgd(options)));
  }
}

TEST_CASE("plain SGD keeps no state, momentum keeps one array") {
  CHECK(Sgd{}.state_arrays() == 0);
  CHECK(Sgd({.momentum = 0.5}).state_arrays() == 1);
}

TEST_CASE("plain SGD subtracts the rate times the gradient") {
  Sgd const sgd{LearningRate::constant(0.5)};
  std::vector<float> weights{1, 2};
  std::vector<float> const gradient{2, -4};
  sgd.update({.step = 1}, weights, gradient, {});
  CHECK(weights == std::vector<float>{0, 4});
}

TEST_CASE("empty braces mean the defaults of SGD") {
  CHECK(Sgd({}).options().rate(1) == Sgd{}.options().rate(1));
  CHECK(Sgd{{}}.options().rate(1) == Sgd{}.options().rate(1));
}

TEST_CASE("SGD checks its constants and arguments") {
  auto const nan = std::numeric_limits<double>::quiet_NaN();
  for (auto const bad : {-0.1, 1.0, nan}) {
    CHECK_THROWS_AS(Sgd({.momentum = bad}), Error);
  }
  for (auto const bad : {-1.0, nan, std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_AS(Sgd({.weight_decay = bad}), Error);
  }
  CHECK_THROWS_AS(Sgd({.nesterov = true}), Error);
  std::vector<float> three(3);
  std::vector<float> two(2);
  std::vector<HostSpan<float>> const one{three};
  CHECK_THROWS_AS(Sgd{}.update({.step = 1}, three, three, one), Error);
  CHECK_THROWS_AS(Sgd({.momentum = 0.5}).update({.step = 1}, three, three, {}), Error);
  CHECK_THROWS_AS(Sgd{}.update({.step = 1}, three, two, {}), Error);
  CHECK_THROWS_AS(Sgd{}.update({.step = 0}, three, three, {}), Error);
}

}  // namespace sgd_test
