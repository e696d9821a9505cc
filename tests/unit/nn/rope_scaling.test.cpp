// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/rope_scaling.hpp>

#include <roundpipe/concepts/ops.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace rope_scaling_test {

namespace {

using namespace roundpipe;
using nn::RopeScaling;
using Kind = RopeScaling::Kind;

constexpr double turn = 6.283185307179586477;

/// The frequencies of all pairs, as operations compute them from a blend.
std::vector<double> frequencies(RopeScaling const& scaling, double theta, std::int64_t head_dim) {
  scaling.check();
  auto const blend = scaling.blend(theta, head_dim);
  std::vector<double> result;
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    auto const f = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    auto const kept = std::min(1.0,
                               std::max(0.0,
                                        blend.kept + blend.kept_by_pair * static_cast<double>(i) +
                                            blend.kept_by_frequency * f));
    result.push_back(f * kept + f * (1 - kept) / blend.factor);
  }
  return result;
}

void check_close(std::vector<double> const& values, std::vector<double> const& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(values[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
}

void check_refused(RopeScaling const& scaling, std::string const& words) {
  auto const error = test::error_of([&] { scaling.check(); });
  INFO(error.message());
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message().find(words) != std::string::npos);
}

/// Heads of all sizes in use, and bases.
template <class F>
void for_each_head(F&& f) {
  for (std::int64_t const head_dim : {2, 6, 64, 80, 128, 256}) {
    for (double const theta : {100.0, 10000.0, 500000.0, 1000000.0}) {
      CAPTURE(head_dim);
      CAPTURE(theta);
      f(head_dim, theta);
    }
  }
}

}  // namespace

TEST_CASE("without scaling, a blend is the default") {
  CHECK(RopeScaling{}.blend(10000, 128) == RotaryBlend{});
  CHECK(RopeScaling{.factor = 8}.blend(10000, 128) == RotaryBlend{});
}

TEST_CASE("linear scaling divides all frequencies") {
  for_each_head([](std::int64_t head_dim, double theta) {
    auto expected = frequencies({}, theta, head_dim);
    for (auto& f : expected) {
      f /= 2.5;
    }
    RopeScaling const scaling{.kind = Kind::linear, .factor = 2.5};
    check_close(frequencies(scaling, theta, head_dim), expected);
    CHECK(scaling.blend(theta, head_dim).amplitude == 1);
  });
}

TEST_CASE("llama3 divides low frequencies, keeps high ones and blends those between") {
  RopeScaling const scaling{.kind = Kind::llama3,
                            .factor = 8,
                            .original_max_position_embeddings = 8192,
                            .low_freq_factor = 1,
                            .high_freq_factor = 4};
  for_each_head([&](std::int64_t head_dim, double theta) {
    auto expected = frequencies({}, theta, head_dim);
    for (auto& f : expected) {
      auto const wave_length = turn / f;
      if (wave_length > 8192) {
        f /= 8;
      } else if (wave_length >= 8192 / 4.0) {
        auto const smooth = (8192 / wave_length - 1) / (4 - 1);
        f = (1 - smooth) * f / 8 + smooth * f;
      }
    }
    check_close(frequencies(scaling, theta, head_dim), expected);
    CHECK(scaling.blend(theta, head_dim).amplitude == 1);
  });
}

TEST_CASE("yarn keeps the first pairs, divides the last ones and blends those between") {
  for (bool const truncate : {true, false}) {
    for (double const context : {4.0, 64.0, 4096.0, 32768.0}) {
      CAPTURE(truncate);
      CAPTURE(context);
      RopeScaling const scaling{.kind = Kind::yarn,
                                .factor = 4,
                                .original_max_position_embeddings = context,
                                .truncate = truncate};
      for_each_head([&](std::int64_t head_dim, double theta) {
        auto const d = static_cast<double>(head_dim);
        auto low = d * std::log(context / (32 * turn)) / (2 * std::log(theta));
        auto high = d * std::log(context / turn) / (2 * std::log(theta));
        if (truncate) {
          low = std::floor(low);
          high = std::ceil(high);
        }
        low = std::max(low, 0.0);
        high = std::min(high, d - 1);
        high = high == low ? high + 0.001 : high;
        auto expected = frequencies({}, theta, head_dim);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          auto const divided =
              std::min(1.0, std::max(0.0, (static_cast<double>(i) - low) / (high - low)));
          expected[i] *= divided / 4 + 1 - divided;
        }
        check_close(frequencies(scaling, theta, head_dim), expected);
      });
    }
  }
}

TEST_CASE("yarn's pairs are those that turn beta_fast and beta_slow times") {
  // With theta = 10^4 and heads of 8 the frequencies are 1, 1/10, 1/100, 1/1000: in 2000 pi
  // positions they turn 1000, 100, 10 times, and once.
  RopeScaling scaling{.kind = Kind::yarn,
                      .factor = 2,
                      .original_max_position_embeddings = 1000 * turn,
                      .beta_fast = 1000 / 1.001,  // just behind pair 0
                      .beta_slow = 1 / 0.999};    // just before pair 3
  check_close(frequencies(scaling, 10000, 8), {1, 0.1 * 5 / 6, 0.01 * 4 / 6, 0.001 / 2});
  scaling.beta_fast = 100 * 1.001;  // just before pair 1
  check_close(frequencies(scaling, 10000, 8), {1, 0.1 * 5 / 6, 0.01 * 4 / 6, 0.001 / 2});
  scaling.beta_fast = 100 / 1.001;  // just behind pair 1
  check_close(frequencies(scaling, 10000, 8), {1, 0.1, 0.01 * 3 / 4, 0.001 / 2});
}

TEST_CASE("yarn amplifies queries and keys") {
  auto const amplitude = [](RopeScaling const& scaling) {
    return scaling.blend(10000, 64).amplitude;
  };
  RopeScaling scaling{.kind = Kind::yarn, .factor = 4, .original_max_position_embeddings = 4096};
  CHECK(amplitude(scaling) == doctest::Approx(0.1 * std::log(4.0) + 1));
  scaling.mscale = 0.7;
  CHECK(amplitude(scaling) == doctest::Approx(0.1 * std::log(4.0) + 1));  // one alone has no effect
  scaling.mscale_all_dim = 0.5;
  CHECK(amplitude(scaling) ==
        doctest::Approx((0.07 * std::log(4.0) + 1) / (0.05 * std::log(4.0) + 1)));
  scaling.attention_factor = 1.25;
  CHECK(amplitude(scaling) == 1.25);
  scaling = {.kind = Kind::yarn, .factor = 1, .original_max_position_embeddings = 4096};
  CHECK(amplitude(scaling) == 1);
}

TEST_CASE("a scaling that says nothing sensible is refused, and the error names the member") {
  auto const nan = std::numeric_limits<double>::quiet_NaN();
  auto const infinite = std::numeric_limits<double>::infinity();
  check_refused({.kind = Kind::linear, .factor = 0.5}, "RopeScaling::factor is 0.5");
  check_refused({.kind = Kind::linear, .factor = nan}, "must be at least 1");
  check_refused({.kind = Kind::linear, .factor = infinite}, "factor");
  check_refused({.kind = Kind::llama3, .factor = 8},
                "RopeScaling::original_max_position_embeddings is 0");
  RopeScaling const llama3{
      .kind = Kind::llama3, .factor = 8, .original_max_position_embeddings = 8192};
  llama3.check();
  auto changed = llama3;
  changed.low_freq_factor = 0;
  check_refused(changed, "low_freq_factor is 0");
  changed = llama3;
  changed.high_freq_factor = 1;
  check_refused(changed, "high_freq_factor is 1.000000, but must be greater than low_freq_factor");
  RopeScaling const yarn{.kind = Kind::yarn, .factor = 4, .original_max_position_embeddings = 4096};
  yarn.check();
  changed = yarn;
  changed.beta_slow = 0;
  check_refused(changed, "beta_slow is 0");
  changed = yarn;
  changed.beta_fast = 0.5;
  check_refused(changed, "beta_fast is 0.5");
  changed = yarn;
  changed.attention_factor = -1;
  check_refused(changed, "attention_factor is -1");
  changed = yarn;
  changed.mscale = -1;
  check_refused(changed, "mscale is -1");
  changed = yarn;
  changed.mscale_all_dim = nan;
  check_refused(changed, "mscale_all_dim");
  RopeScaling{.factor = -7}.check();  // without a kind, nothing is read
}

}  // namespace rope_scaling_test
