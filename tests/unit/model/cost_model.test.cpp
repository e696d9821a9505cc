// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/model/cost_model.hpp>

#include <roundpipe/model/sequential.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace cost_model_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("estimated times are FLOPs over the peak plus bytes over the bandwidth") {
  auto const model = describe(Sequential{ToyInput{}, ToyDense{}, ToyLoss{}}, {2, 3});
  DeviceProperties device;
  device.flops_per_second = 100;
  device.memory_bytes_per_second = 10;
  auto const estimate = CostModel::estimate(model, device);
  auto const& costs = estimate.layers();
  REQUIRE(costs.size() == 3);
  // ToyDense counts its work: a 4 by 4 product at 6 positions.
  auto const& dense = model.layers[1];
  auto const bytes = static_cast<double>(dense.input.bytes() + dense.boundary.bytes() +
                                         dense.footprint.saved_bytes + (16 + 4) * sizeof(float));
  auto const flops = 2.0 * 6 * 4 * 4;
  CHECK(costs[1].forward_s == doctest::Approx(flops / 100 + bytes / 10));
  CHECK(costs[1].backward_s == doctest::Approx(2 * flops / 100 + 2 * bytes / 10));
  // ToyInput does not: 3 by 4 parameters, twice each at 6 positions.
  auto const& input = model.layers[0];
  auto const input_bytes = static_cast<double>(input.boundary.bytes() + input.side_inputs.bytes() +
                                               input.footprint.saved_bytes + 12 * sizeof(float));
  CHECK(costs[0].forward_s == doctest::Approx(2.0 * 12 * 6 / 100 + input_bytes / 10));
}

TEST_CASE("a round writes each sum of gradients, and rounds it where that is another type") {
  DeviceProperties device;
  device.memory_bytes_per_second = 10;
  auto const seconds = [&](ToyTypes const& types) {
    auto const model =
        describe(Sequential{ToyInput{types}, ToyDense{types}, ToyLoss{types}}, {2, 3});
    CostModel costs(std::vector<LayerCost>(3, {1, 2}));
    costs.set_network({3, 4});
    auto const with = with_round_costs(costs, model, device);
    CHECK(with.network() == costs.network());
    CHECK(with.layers()[1].backward_s == 2);
    return with.layers()[1].round_s;
  };
  // A product of 4 by 4, and a bias of 4.
  CHECK(seconds({}) == doctest::Approx(20 * 4.0 / 10));
  CHECK(seconds({.parameter = DType::bf16}) == doctest::Approx(20 * (4 + 4 + 2.0) / 10));
  CHECK(seconds({.frozen = 2}) == doctest::Approx(16 * 4.0 / 10));  // the bias
}

}  // namespace cost_model_test
