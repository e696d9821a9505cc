// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/estimate/shape_costs.hpp>

#include <roundpipe/estimate/roofline.hpp>
#include <roundpipe/nn/transformer_config.hpp>
#include <support/error_of.hpp>
#include <support/shapes.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace shape_costs_test {

namespace {

using namespace roundpipe;
using test::error_of;
using test::rtx4090;
using test::small_dense;
using test::small_mixture;

/// One FLOP a second, and the given bytes a second.
DeviceProperties device_of(double flops, double bandwidth) {
  return {.name = "toy", .flops_per_second = flops, .memory_bytes_per_second = bandwidth};
}

/// Forward times of a layer and of the head for 4 x 2048 tokens in milliseconds, measured on an RTX
/// 4090 for the bubble study of RoundPipe (arXiv:2604.27085).
struct Measured {
  char const* name;
  double layer_ms;
  double head_ms;
};

constexpr Measured measured[] = {{"qwen3-1.7b", 7.429, 22.0655},
                                 {"llama3.1-8b", 18.50370313, 37.2255},
                                 {"gpt-oss-20b", 21.6445625, 44.2925},
                                 {"qwen3-32b", 40.5610625, 54.928},
                                 {"qwen3-235b-a22b", 43.016, 42.444}};

}  // namespace

TEST_CASE("every layer has a cost, and the head has the last one") {
  for (auto const& shape : known_model_shapes()) {
    CAPTURE(shape.name);
    auto const layers = static_cast<std::size_t>(shape.layers);
    CHECK(layer_costs(shape, rtx4090(), {4, 2048}).size() == layers + 1);
    CHECK(layer_bytes(shape, {4, 2048}).size() == layers + 1);
  }
}

TEST_CASE("when FLOPs are the limit, times are FLOPs over the peak") {
  auto const costs = layer_costs(small_dense(), device_of(10, 1e9), {2, 3});
  REQUIRE(costs.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(costs[i].forward_s == doctest::Approx(246));
    CHECK(costs[i].backward_s == doctest::Approx(492));
  }
  CHECK(costs[3].forward_s == doctest::Approx(66));
  CHECK(costs[3].backward_s == doctest::Approx(132));
}

TEST_CASE("when memory is the limit, times are bytes over the bandwidth") {
  auto const costs = layer_costs(small_dense(), device_of(1e9, 10), {2, 3});
  // 350 of parameters, 2 * 6 * 55 of activations, 2 * 6 * 5 of boundary.
  CHECK(costs[0].forward_s == doctest::Approx(107));
  CHECK(costs[0].backward_s == doctest::Approx(214));
  // 2 * 55 of parameters, 60 of boundary.
  CHECK(costs[3].forward_s == doctest::Approx(17));
  CHECK(costs[3].backward_s == doctest::Approx(34));
}

TEST_CASE("a few positions read only the experts that they reach") {
  auto const device = device_of(1e9, 1);
  // One position reaches 2 of 4 experts: 2 * 280 bytes of parameters, activations 2 * 80,
  // boundary 10.
  CHECK(layer_costs(small_mixture(), device, {1, 1})[0].forward_s ==
        doctest::Approx(560 + 160 + 10));
  // Two positions may reach all experts; three cannot reach more.
  CHECK(layer_costs(small_mixture(), device, {1, 2})[0].forward_s ==
        doctest::Approx(980 + 320 + 20));
  CHECK(layer_costs(small_mixture(), device, {1, 3})[0].forward_s ==
        doctest::Approx(980 + 480 + 30));
}

TEST_CASE("no measured forward is faster than its roofline, or ten times slower") {
  for (auto const& [name, layer_ms, head_ms] : measured) {
    CAPTURE(name);
    auto const costs = layer_costs(model_shape(name), rtx4090(), {4, 2048});
    CHECK(1e3 * costs.front().forward_s < layer_ms);
    CHECK(1e4 * costs.front().forward_s > layer_ms);
    CHECK(1e3 * costs.back().forward_s < head_ms);
    CHECK(1e4 * costs.back().forward_s > head_ms);
  }
}

TEST_CASE("the bytes of a dense layer and of the head match a count by hand") {
  auto const bytes = layer_bytes(small_dense(), {2, 3});
  REQUIRE(bytes.size() == 4);
  // Saved: 660 of activations minus the input's 60. Workspace: the MLP's half, 2 * 6 * (5 + 21).
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(bytes[i] == LayerBytes{350, 350, 60, 600, 312});
  }
  // Logits of 6 positions, 4 bytes each, and 2 of gradient each; the norm and its gradient.
  CHECK(bytes[3] == LayerBytes{110, 110, 0, 0, 6 * 11 * 6 + 2 * 60});
}

TEST_CASE("with narrow experts, attention determines the workspace") {
  auto shape = small_dense();
  shape.intermediate = 1;
  // 2 * 6 * (5 + 3 * 5 + 2 * 2)
  CHECK(layer_bytes(shape, {2, 3}).front().workspace_bytes == 288);
}

TEST_CASE("the saved bytes and boundaries of all layers are their activations") {
  for (auto const& shape : known_model_shapes()) {
    CAPTURE(shape.name);
    auto const bytes = layer_bytes(shape, {4, 2048});
    CHECK(bytes.front().saved_bytes + bytes.front().boundary_bytes ==
          activation_bytes(shape, {4, 2048}));
  }
}

TEST_CASE("the workspace of the head does not grow with logits beyond a chunk") {
  CHECK(head_chunk_positions == nn::TransformerConfig{}.loss_chunk);
  auto const shape = model_shape("llama3.1-8b");
  auto const one = layer_bytes(shape, {1, head_chunk_positions}).back().workspace_bytes;
  auto const two = layer_bytes(shape, {2, head_chunk_positions}).back().workspace_bytes;
  CHECK(two - one == Bytes{2} * 2 * 1024 * 4096);
}

TEST_CASE("costs require a shape, extents, a peak and a bandwidth") {
  auto const code = [](auto&& f) { return error_of(f).code(); };
  auto bad = small_dense();
  bad.layers = 0;
  auto const good = device_of(1, 1);
  CHECK(code([&] { (void)layer_costs(bad, good, {1, 1}); }) == Errc::invalid_argument);
  CHECK(code([&] { (void)layer_bytes(bad, {1, 1}); }) == Errc::invalid_argument);
  CHECK(code([&] { (void)layer_costs(small_dense(), good, {0, 1}); }) == Errc::invalid_argument);
  CHECK(code([&] { (void)layer_bytes(small_dense(), {1, 0}); }) == Errc::invalid_argument);
  CHECK(code([&] { (void)layer_costs(small_dense(), device_of(0, 1), {1, 1}); }) ==
        Errc::invalid_argument);
  CHECK(code([&] { (void)layer_costs(small_dense(), device_of(1, 0), {1, 1}); }) ==
        Errc::invalid_argument);
}

}  // namespace shape_costs_test
