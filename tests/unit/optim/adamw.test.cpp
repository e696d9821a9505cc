// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/optim/adamw.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/simd_level.hpp>
#include <support/optimizer_check.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace adamw_test {

namespace {

using roundpipe::AdamW;
using roundpipe::AdamWOptions;
using roundpipe::DecayGroup;
using roundpipe::Error;
using roundpipe::HostSpan;
using roundpipe::LearningRate;
using roundpipe::UpdateContext;
using roundpipe::test::gradients;
using roundpipe::test::Parameter;

/// The same update in double, as the paper writes it.
struct Reference {
  AdamWOptions options;
  std::vector<double> w;
  std::vector<double> m;
  std::vector<double> v;

  void step(UpdateContext const& context, std::vector<float> const& gradient) {
    auto const t = static_cast<double>(context.step);
    auto const rate = options.rate(context.step);
    for (std::size_t i = 0; i < w.size(); ++i) {
      auto const g =
          static_cast<double>(gradient[i]) * static_cast<double>(context.gradient_factor);
      m[i] = options.beta1 * m[i] + (1 - options.beta1) * g;
      v[i] = options.beta2 * v[i] + (1 - options.beta2) * g * g;
      auto const m_hat = m[i] / (1 - std::pow(options.beta1, t));
      auto const v_hat = v[i] / (1 - std::pow(options.beta2, t));
      auto const decay =
          context.parameter.decay == DecayGroup::decayed ? options.weight_decay * w[i] : 0;
      w[i] -= rate * (m_hat / (std::sqrt(v_hat) + options.epsilon) + decay);
    }
  }
};

}  // namespace

TEST_CASE("AdamW follows a double-precision reference") {
  constexpr std::size_t size = 777;
  for (auto const decay : {DecayGroup::decayed, DecayGroup::exempt}) {
    for (auto const beta2 : {0.999, 0.95, 0.0}) {
      AdamWOptions const options{.rate = LearningRate::warmup_cosine(1e-2, 5, 60, 1e-3),
                                 .beta2 = beta2,
                                 .weight_decay = 0.1};
      AdamW const adamw(options);
      Parameter parameter(size, adamw.state_arrays(), 3);
      Reference reference{options,
                          {parameter.weights().begin(), parameter.weights().end()},
                          std::vector<double>(size),
                          std::vector<double>(size)};
      for (std::uint64_t step = 1; step <= 60; ++step) {
        UpdateContext const context{
            .step = step, .gradient_factor = 0.5F, .parameter = {.decay = decay}};
        auto const gradient = gradients(size, step);
        parameter.update(adamw, context, gradient, size);
        reference.step(context, gradient);
      }
      double worst = 0;
      for (std::size_t i = 0; i < size; ++i) {
        auto const off = std::abs(static_cast<double>(parameter.weights()[i]) - reference.w[i]);
        worst = std::max(worst, off / (1 + std::abs(reference.w[i])));
      }
      CHECK(worst < 2e-5);  // 60 steps round the value
    }
  }
}

TEST_CASE("one step is accurate to a few units in the last place") {
  // Each operation is rounded once, by at most half a unit (u = 2^-24, relative). With constants of
  // one rounding each: m is a sum of two terms of the same sign here, with two roundings (constant,
  // product) and g's own, then the sum's: 4 u. v has g twice: constant, product, square, 2 of g,
  // sum: 6 u. The move: m 4, v 6 / 2 under the root, root 1, its scale 1 and product 1, sum with
  // epsilon 1 (and epsilon's own), quotient 1, step 1 and product 1: 15 u. The new weight: those of
  // the move and of the decay (3 u), weighted, one for their sum and one for its own.
  constexpr double u = 0x1p-24;
  constexpr std::size_t size = 3000;
  AdamWOptions const options{.rate = LearningRate::constant(1e-2), .weight_decay = 0.1};
  AdamW const adamw(options);
  std::mt19937_64 random(11);
  std::uniform_real_distribution<float> exponent(-30, 4);
  std::uniform_real_distribution<float> sign(-1, 1);
  std::vector<float> w(size);
  std::vector<float> m(size);
  std::vector<float> v(size);
  std::vector<float> g(size);
  for (std::size_t i = 0; i < size; ++i) {
    w[i] = std::copysign(std::exp2(exponent(random)), sign(random));
    g[i] = std::copysign(std::exp2(exponent(random)), sign(random));
    m[i] = std::copysign(std::exp2(exponent(random)), g[i]);
    v[i] = std::exp2(exponent(random));
  }
  Reference reference{options, {w.begin(), w.end()}, {m.begin(), m.end()}, {v.begin(), v.end()}};
  auto const before = w;
  UpdateContext const context{.step = 7, .gradient_factor = 0.3F};
  reference.step(context, g);
  for (auto const level : roundpipe::simd_levels()) {
    roundpipe::SimdLevelOverride const use(level);
    auto w1 = before;
    auto m1 = m;
    auto v1 = v;
    std::vector<HostSpan<float>> const states{m1, v1};
    adamw.update(context, w1, g, states);
    for (std::size_t i = 0; i < size; ++i) {
      auto const move = reference.w[i] - static_cast<double>(before[i]);
      auto const decay = 1e-3 * std::abs(static_cast<double>(before[i]));
      auto const moved = std::abs(move) + 2 * decay;
      auto const is = [](float value) { return static_cast<double>(value); };
      REQUIRE(std::abs(is(m1[i]) - reference.m[i]) <= 4.01 * u * std::abs(reference.m[i]));
      REQUIRE(std::abs(is(v1[i]) - reference.v[i]) <= 6.01 * u * std::abs(reference.v[i]));
      REQUIRE(std::abs(is(w1[i]) - reference.w[i]) <=
              17.01 * u * moved + u * std::abs(reference.w[i]));
    }
  }
}

TEST_CASE("subnormal gradients and states are not flushed to zero") {
  AdamW const adamw({.beta1 = 0.5, .beta2 = 0.5});
  for (auto const level : roundpipe::simd_levels()) {
    roundpipe::SimdLevelOverride const use(level);
    std::vector<float> w(20, 1);
    std::vector<float> m(20, 0x1p-140F);
    std::vector<float> v(20, 0x1p-140F);
    std::vector<float> const g(20, 0x1p-141F);
    std::vector<HostSpan<float>> const states{m, v};
    adamw.update({.step = 1}, w, g, states);
    for (std::size_t i = 0; i < 20; ++i) {
      CHECK(m[i] == 0x1.8p-141F);
      CHECK(v[i] == 0x1p-141F);
      CHECK(w[i] < 1);
    }
  }
}

TEST_CASE("the first step moves by the rate against the sign of the gradient") {
  AdamW const adamw({.rate = LearningRate::constant(0.25), .weight_decay = 0});
  std::vector<float> weights{1, 1, 1};
  std::vector<float> const gradient{1e-3F, -4, 0};
  std::vector<float> m(3);
  std::vector<float> v(3);
  std::vector<HostSpan<float>> const states{m, v};
  adamw.update({.step = 1}, weights, gradient, states);
  CHECK(weights[0] == doctest::Approx(0.75).epsilon(1e-4));
  CHECK(weights[1] == doctest::Approx(1.25));
  CHECK(weights[2] == 1);
  CHECK(m[1] == doctest::Approx(-0.4));
  CHECK(v[1] == doctest::Approx(0.016));
}

TEST_CASE("weight decay is decoupled: it shrinks decayed weights by rate times decay") {
  AdamW const adamw({.rate = LearningRate::constant(0.5), .weight_decay = 0.5});
  std::vector<float> const gradient{0};
  for (auto const decay : {DecayGroup::decayed, DecayGroup::exempt}) {
    std::vector<float> weights{8};
    std::vector<float> m(1);
    std::vector<float> v(1);
    std::vector<HostSpan<float>> const states{m, v};
    adamw.update({.step = 1, .gradient_factor = 1, .parameter = {.decay = decay}},
                 weights,
                 gradient,
                 states);
    CHECK(weights[0] == (decay == DecayGroup::decayed ? 6 : 8));
    CHECK(m[0] == 0);
    CHECK(v[0] == 0);
  }
}

TEST_CASE("the gradient factor scales the gradients") {
  AdamW const adamw;
  std::vector<float> const gradient{1, 2, 3};
  std::vector<float> const half{0.5F, 1, 1.5F};
  Parameter a(3, 2, 1);
  Parameter b(3, 2, 1);
  a.update(adamw, {.step = 1, .gradient_factor = 0.5F}, gradient, 3);
  b.update(adamw, {.step = 1}, half, 3);
  CHECK(a.same_bits(b));
}

TEST_CASE("AdamW gives the same bits for every cut of a parameter") {
  CHECK(roundpipe::test::parts_do_not_matter(AdamW{}));
  CHECK(roundpipe::test::parts_do_not_matter(
      AdamW({.rate = LearningRate::constant(0.1), .beta1 = 0.5, .weight_decay = 0.3})));
}

TEST_CASE("an element that is not finite spoils no other element") {
  AdamW const adamw;
  std::vector<float> gradient(100, 1);
  gradient[40] = std::numeric_limits<float>::quiet_NaN();
  Parameter spoilt(100, 2, 1);
  spoilt.update(adamw, {.step = 1}, gradient, 100);
  gradient[40] = 1;
  Parameter clean(100, 2, 1);
  clean.update(adamw, {.step = 1}, gradient, 100);
  for (std::size_t i = 0; i < 100; ++i) {
    if (i == 40) {
      CHECK(std::isnan(spoilt.weights()[i]));
    } else {
      CHECK(spoilt.weights()[i] == clean.weights()[i]);
    }
  }
}

TEST_CASE("late steps need no bias correction") {
  AdamW const adamw({.rate = LearningRate::constant(1), .weight_decay = 0});
  std::vector<float> weights{0};
  std::vector<float> const gradient{1};
  std::vector<float> m{1};
  std::vector<float> v{1};
  std::vector<HostSpan<float>> const states{m, v};
  adamw.update({.step = 1'000'000'000}, weights, gradient, states);
  CHECK(weights[0] == doctest::Approx(-1));
}

TEST_CASE("an empty part does not change") {
  std::vector<HostSpan<float>> const states(2);
  CHECK_NOTHROW(AdamW{}.update({.step = 1}, {}, {}, states));
}

TEST_CASE("empty braces mean the defaults of AdamW") {
  CHECK(AdamW({}).options().rate(1) == AdamW{}.options().rate(1));
  CHECK(AdamW{{}}.options().rate(1) == AdamW{}.options().rate(1));
}

TEST_CASE("AdamW checks its constants and arguments") {
  auto const nan = std::numeric_limits<double>::quiet_NaN();
  for (auto const bad : {-0.1, 1.0, nan}) {
    CHECK_THROWS_AS(AdamW({.beta1 = bad}), Error);
    CHECK_THROWS_AS(AdamW({.beta2 = bad}), Error);
  }
  for (auto const bad : {-1.0, nan, std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_AS(AdamW({.epsilon = bad}), Error);
    CHECK_THROWS_AS(AdamW({.weight_decay = bad}), Error);
  }
  std::vector<float> three(3);
  std::vector<float> two(2);
  std::vector<HostSpan<float>> const good{three, three};
  std::vector<HostSpan<float>> const uneven{three, two};
  AdamW const adamw{LearningRate::constant(1e-4)};
  CHECK(adamw.options().rate(1) == 1e-4);
  CHECK_THROWS_AS(adamw.update({.step = 1}, three, three, {}), Error);
  CHECK_THROWS_AS(adamw.update({.step = 1}, three, three, uneven), Error);
  CHECK_THROWS_AS(adamw.update({.step = 1}, three, two, good), Error);
  CHECK_THROWS_AS(adamw.update({.step = 0}, three, three, good), Error);
}

}  // namespace adamw_test
