// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/model/byte_description.hpp>

#include <roundpipe/model/parameter_blocks.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace byte_description_test {

using namespace roundpipe;

TEST_CASE("layers with known bytes become a model with the same bytes") {
  std::vector<LayerBytes> const layers{
      {1000, 1000, 64, 300, 20}, {50, 50, 8, 0, 0}, {7, 7, 6, 5, 4}};
  auto const model = describe_bytes(layers);
  REQUIRE(model.size() == 3);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    CAPTURE(i);
    auto const& facts = model.layers[i];
    REQUIRE(facts.parameters.size() == 1);
    CHECK(facts.parameters[0].tensor.shape ==
          Shape{static_cast<std::int64_t>(layers[i].parameter_bytes / 2)});
    CHECK(facts.footprint.saved_bytes == layers[i].saved_bytes);
    CHECK(facts.footprint.workspace_bytes == layers[i].workspace_bytes);
    CHECK(facts.is_loss == (i == 2));
    CHECK(facts.boundary.size() == (i == 2 ? 0 : 1));  // a loss layer has no boundary
    CHECK(facts.input.size() == (i == 0 ? 0 : 1));
  }
  CHECK(model.layers[0].boundary[0].shape == Shape{32});
  CHECK(model.layers[1].input[0].shape == Shape{32});
  CHECK(model.layers[2].input[0].shape == Shape{4});
}

TEST_CASE("layers without bytes have a block and a boundary of one number each") {
  std::vector<LayerBytes> const layers(4);
  auto const model = describe_bytes(layers);
  CHECK(form_blocks(model).blocks.size() == 4);
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
    CHECK(model.layers[i].boundary[0].shape == Shape{1});
    CHECK(model.layers[i].parameters[0].tensor.shape == Shape{1});
  }
}

TEST_CASE("the only layer of a model is its loss") {
  std::vector<LayerBytes> const layers(1);
  auto const model = describe_bytes(layers);
  CHECK(model.size() == 1);
  CHECK(model.layers[0].is_loss);
  CHECK(model.layers[0].input.empty());
  CHECK(model.layers[0].boundary.empty());
}

}  // namespace byte_description_test
