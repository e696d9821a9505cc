// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/estimate/roofline.hpp>

#include <support/error_of.hpp>
#include <support/shapes.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

namespace roofline_test {

namespace {

using namespace roundpipe;
using test::error_of;
using test::rtx4090;
using test::small_dense;
using test::small_mixture;

constexpr std::int64_t context = 2048;

/// The paper's figures for a model on an RTX 4090.
struct Published {
  char const* name;
  double reload_over_recompute;
  std::int64_t least_batch;
};

constexpr Published published[] = {{"qwen3-1.7b", 5.75, 7},
                                   {"llama3.1-8b", 3.06, 6},
                                   {"gpt-oss-20b", 4.17, 41},
                                   {"qwen3-32b", 2.37, 6},
                                   {"qwen3-235b-a22b", 3.14, 77}};

double two_digits(double value) {
  return std::round(value * 100) / 100;
}

ModelShape random_shape(std::mt19937& random) {
  auto const draw = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  ModelShape shape{.name = "random",
                   .hidden = 64 * draw(64),
                   .head_dim = 16 * draw(8),
                   .intermediate = 64 * draw(256),
                   .layers = draw(100),
                   .vocabulary = draw(200000)};
  shape.kv_heads = draw(8);
  shape.heads = shape.kv_heads * draw(8);
  shape.active_experts = draw(4);
  shape.experts = shape.active_experts * draw(16);
  return shape;
}

}  // namespace

TEST_CASE("a dense layer has the figures that are counted by hand") {
  auto const shape = small_dense();
  BatchShape const batch{2, 3};  // 6 positions
  CHECK(layer_parameters(shape) == 175);
  CHECK(active_layer_parameters(shape) == 175);
  CHECK(layer_parameter_bytes(shape) == 350);
  // Products: 2 * 6 * 175; attention: 4 * 3 * 3 * 2 * 5.
  CHECK(layer_work(shape, batch).forward_flops == 2100 + 360);
  CHECK(layer_work(shape, batch).backward_flops == 2 * 2460);
  CHECK(activation_bytes(shape, batch) == 2 * 6 * (6 * 5 + 2 * 2 + 3 * 7));
  CHECK(checkpoint_bytes(shape, batch) == 2 * 6 * 5);
  CHECK(operational_intensity(shape, batch) == doctest::Approx(2460.0 / (350 + 60)));
}

TEST_CASE("a layer of experts computes with the active experts and uploads all of them") {
  auto const shape = small_mixture();
  BatchShape const batch{2, 3};
  CHECK(layer_parameters(shape) == 490);
  CHECK(active_layer_parameters(shape) == 280);
  CHECK(layer_parameter_bytes(shape) == 980);
  CHECK(layer_work(shape, batch).forward_flops == 2 * 6 * 280 + 360);
  CHECK(activation_bytes(shape, batch) == 2 * 6 * (6 * 5 + 2 * 2 + 3 * 2 * 7 + 4));
  CHECK(checkpoint_bytes(shape, batch) == 2 * 6 * (5 + 4));
  CHECK(operational_intensity(shape, batch) == doctest::Approx(3720.0 / (980 + 108)));
}

TEST_CASE("the head projects every position to the vocabulary") {
  CHECK(head_parameters(small_dense()) == 55);
  CHECK(head_work(small_dense(), {2, 3}).forward_flops == 2 * 6 * 55);
  CHECK(head_work(small_dense(), {2, 3}).backward_flops == 4 * 6 * 55);
}

TEST_CASE("the published ratio of reloading to recomputing activations is reproduced") {
  for (auto const& [name, ratio, least] : published) {
    CAPTURE(name);
    auto const shape = model_shape(name);
    BatchShape const batch{4, context};
    auto const reload = reload_seconds(shape, rtx4090(), batch);
    auto const recompute = recompute_seconds(shape, rtx4090(), batch);
    CHECK(two_digits(reload / recompute) == ratio);
  }
}

TEST_CASE("the published batch reaches the ridge point") {
  for (auto const& [name, ratio, least] : published) {
    CAPTURE(name);
    CHECK(least_batch(model_shape(name), rtx4090(), context) == least);
  }
}

TEST_CASE("32 layers of llama3.1-8b keep 68 GiB of activations of 16K tokens") {
  auto const shape = model_shape("llama3.1-8b");
  auto const all = static_cast<Bytes>(shape.layers) * activation_bytes(shape, {1, 16384});
  CHECK(all == 68_GiB);
  CHECK(all == static_cast<Bytes>(shape.layers) * activation_bytes(shape, {8, 2048}));
}

TEST_CASE("layers, head and embedding have the number of parameters in the models' names") {
  auto const billions = [](char const* name, int tables) {
    auto const shape = model_shape(name);
    return (static_cast<double>(shape.layers) * layer_parameters(shape) +
            tables * head_parameters(shape)) /
           1e9;
  };
  CHECK(two_digits(billions("qwen3-1.7b", 1)) == 1.72);  // tied
  CHECK(two_digits(billions("llama3.1-8b", 2)) == 8.03);
  CHECK(two_digits(billions("gpt-oss-20b", 2)) == doctest::Approx(20.74));
  CHECK(two_digits(billions("qwen3-32b", 2)) == doctest::Approx(30.75));  // wider queries
  CHECK(two_digits(billions("qwen3-235b-a22b", 2)) == doctest::Approx(231.89));
}

TEST_CASE("the ridge point is the peak over the upload rate") {
  CHECK(ridge_point(rtx4090()) == doctest::Approx(330e12 / 32e9));
}

TEST_CASE("more sequences raise the intensity and the work, for every shape") {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    auto const shape = random_shape(random);
    BatchShape const small{1 + i % 5, 1 + 7 * i};
    BatchShape const large{small.rows + 1, small.length};
    CHECK(operational_intensity(shape, large) > operational_intensity(shape, small));
    CHECK(layer_work(shape, large).forward_flops > layer_work(shape, small).forward_flops);
    CHECK(activation_bytes(shape, large) > activation_bytes(shape, small));
    CHECK(checkpoint_bytes(shape, small) < activation_bytes(shape, small));
    CHECK(active_layer_parameters(shape) <= layer_parameters(shape));
  }
}

TEST_CASE(
    "the smallest sufficient batch is the first that reaches the ridge, and matches a closed "
    "form") {
  std::mt19937 random(2);
  int none = 0;
  int found = 0;
  for (int i = 0; i < 500; ++i) {
    auto const shape = random_shape(random);
    std::int64_t const length = 64 * (1 + i % 40);
    auto device = rtx4090();
    device.upload_bytes_per_second =
        std::exp(std::uniform_real_distribution<>(std::log(1e9), std::log(1e12))(random));
    auto const ridge = ridge_point(device);
    auto const least = least_batch(shape, device, length);
    auto const flops = layer_work(shape, {1, length}).forward_flops;
    auto const gain = flops / ridge - static_cast<double>(checkpoint_bytes(shape, {1, length}));
    if (gain <= 0) {
      ++none;
      CHECK(least == std::nullopt);
      continue;
    }
    ++found;
    REQUIRE(least.has_value());
    CHECK(std::abs(static_cast<double>(*least) -
                   std::ceil(static_cast<double>(layer_parameter_bytes(shape)) / gain)) <= 1e-9);
    if (*least <= 1000) {
      std::int64_t first = 1;
      while (operational_intensity(shape, {first, length}) < ridge) {
        ++first;
      }
      CHECK(*least == first);
    }
  }
  CHECK(none > 20);
  CHECK(found > 100);
}

TEST_CASE("a faster link never needs more sequences") {
  for (auto const& shape : known_model_shapes()) {
    auto device = rtx4090();
    auto last = std::numeric_limits<std::int64_t>::max();
    for (device.upload_bytes_per_second = 4e9; device.upload_bytes_per_second < 2e13;
         device.upload_bytes_per_second *= 1.5) {
      auto const least =
          least_batch(shape, device, context).value_or(std::numeric_limits<std::int64_t>::max());
      CHECK(least <= last);
      last = least;
    }
    CHECK(last == 1);
  }
}

TEST_CASE("no batch reaches the ridge when the link is too slow for a checkpoint") {
  auto device = rtx4090();
  device.upload_bytes_per_second = 1e6;
  CHECK(least_batch(model_shape("qwen3-1.7b"), device, context) == std::nullopt);
}

TEST_CASE("uncountable problems are refused") {
  auto const code = [](auto&& f) { return error_of(f).code(); };
  auto const shape = small_dense();
  auto bad = shape;
  bad.hidden = 0;
  CHECK(code([&] { (void)layer_parameters(bad); }) == Errc::invalid_argument);
  CHECK(code([&] { (void)head_parameters(bad); }) == Errc::invalid_argument);
  for (BatchShape const batch : {BatchShape{0, 1}, BatchShape{1, 0}, BatchShape{-1, -1}}) {
    CHECK(code([&] { (void)layer_work(shape, batch); }) == Errc::invalid_argument);
    CHECK(code([&] { (void)activation_bytes(shape, batch); }) == Errc::invalid_argument);
    CHECK(code([&] { (void)checkpoint_bytes(shape, batch); }) == Errc::invalid_argument);
    CHECK(code([&] { (void)operational_intensity(shape, batch); }) == Errc::invalid_argument);
  }
  CHECK(code([&] { (void)least_batch(shape, rtx4090(), 0); }) == Errc::invalid_argument);
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(code([&] { (void)activation_bytes(shape, {most, most}); }) == Errc::invalid_argument);

  auto device = rtx4090();
  device.upload_bytes_per_second = 0;  // unknown
  auto const error = error_of([&] { (void)ridge_point(device); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() ==
        "device 'RTX 4090' has no upload_bytes_per_second, which costs depend on");
  CHECK(code([&] { (void)least_batch(shape, device, 1); }) == Errc::invalid_argument);
  CHECK(code([&] { (void)reload_seconds(shape, device, {1, 1}); }) == Errc::invalid_argument);
  device.flops_per_second = std::numeric_limits<double>::quiet_NaN();
  CHECK(code([&] { (void)recompute_seconds(shape, device, {1, 1}); }) == Errc::invalid_argument);
}

}  // namespace roofline_test
