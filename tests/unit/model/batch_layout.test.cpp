// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/model/batch_layout.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace batch_layout_test {

namespace {

using namespace roundpipe;

ModelDescription model_of(std::vector<TensorTable> side_inputs) {
  ModelDescription model;
  for (auto& table : side_inputs) {
    LayerFacts facts;
    facts.name = "toy";
    facts.side_inputs = std::move(table);
    model.layers.push_back(std::move(facts));
  }
  return model;
}

TensorSpec const tokens{"tokens", {2, 3}, DType::i32};
TensorSpec const labels{"labels", {2, 3}, DType::i32};
TensorSpec const weights{"weights", {2, 3}, DType::f32};

}  // namespace

TEST_CASE("each tensor of a batch is listed once, in order of first mention") {
  auto const layout = lay_out_batch(model_of(
      {TensorTable{tokens}, {}, TensorTable{labels, tokens}, TensorTable{weights, labels}}));
  CHECK(layout.tensors == TensorTable{tokens, labels, weights});
  CHECK(layout.of_layer == std::vector<std::vector<std::size_t>>{{0}, {}, {1, 0}, {2, 1}});
}

TEST_CASE("a model may read nothing") {
  auto const layout = lay_out_batch(model_of({{}, {}}));
  CHECK(layout.tensors.empty());
  CHECK(layout.of_layer.size() == 2);
}

TEST_CASE("layers must agree on the tensor behind a name") {
  TensorSpec const longer{"tokens", {2, 4}, DType::i32};
  TensorSpec const wider{"tokens", {2, 3}, DType::i64};
  for (auto const& other : {longer, wider}) {
    auto const error = test::error_of(
        [&] { return lay_out_batch(model_of({TensorTable{tokens}, TensorTable{other}})); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(error.message() == "layer 1 (toy) reads 'tokens' as " +
                                 std::string(name_of(other.dtype)) + to_string(other.shape) +
                                 ", another layer reads it differently");
  }
}

}  // namespace batch_layout_test
