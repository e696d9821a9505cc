// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/model/parameter_blocks.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace parameter_blocks_test {

namespace {

using namespace roundpipe;
using test::error_of;

/// A parameter "name" of \p size elements.
ParameterSpec parameter(std::string name,
                        std::int64_t size,
                        DType dtype = DType::f32,
                        std::string key = {}) {
  return {{std::move(name), {size}, dtype}, Initial::zeros(), DecayGroup::decayed, std::move(key)};
}

ModelDescription model_of(std::vector<ParameterTable> tables) {
  ModelDescription model;
  for (auto& table : tables) {
    LayerFacts facts;
    facts.name = "toy";
    facts.parameters = std::move(table);
    model.layers.push_back(std::move(facts));
  }
  return model;
}

std::vector<std::size_t> layers_of(ParameterBlocks const& blocks, std::size_t block) {
  std::vector<std::size_t> result;
  for (auto const use : blocks.blocks[block].uses) {
    CHECK(blocks.use(use).block == BlockId(block));
    result.push_back(blocks.use(use).layer.index());
  }
  return result;
}

}  // namespace

TEST_CASE("the unshared parameters of a layer form one block") {
  auto const blocks = form_blocks(
      model_of({{parameter("a", 3), parameter("b", 100, DType::bf16)}, {}, {parameter("c", 1)}}));
  REQUIRE(blocks.blocks.size() == 2);
  auto const& first = blocks.blocks[0];
  CHECK(first.master == TensorTable{{"a", {3}, DType::f32}, {"b", {100}, DType::bf16}});
  CHECK(first.gradient == TensorTable{{"a", {3}, DType::f32}, {"b", {100}, DType::f32}});
  CHECK(first.rounded == TensorTable{{"b", {100}, DType::bf16}});
  CHECK(first.rounded_tensors == std::vector<std::optional<std::size_t>>{std::nullopt, 0});
  CHECK(first.specs.size() == 2);
  CHECK(layers_of(blocks, 0) == std::vector<std::size_t>{0});
  CHECK(layers_of(blocks, 1) == std::vector<std::size_t>{2});

  REQUIRE(blocks.layer_uses.size() == 3);
  CHECK(blocks.layer_uses[0] == std::vector{BlockUseId(0)});
  CHECK(blocks.layer_uses[1].empty());
  CHECK(blocks.layer_uses[2] == std::vector{BlockUseId(1)});
  REQUIRE(blocks.places.size() == 3);
  REQUIRE(blocks.places[0].size() == 2);
  CHECK(blocks.places[0][1].use == BlockUseId(0));
  CHECK(blocks.places[0][1].tensor == 1);
  CHECK(blocks.places[1].empty());
  CHECK(blocks.places[2][0].use == BlockUseId(1));
  CHECK(blocks.places[2][0].tensor == 0);
  CHECK(blocks.parameter_count() == 104);
  CHECK(&blocks.block_of(BlockUseId(1)) == &blocks.blocks[1]);
}

TEST_CASE("a parameter's name is the number of its first layer and what that layer calls it") {
  auto const blocks = form_blocks(model_of({
      {parameter("table", 8, DType::bf16, "key")},
      {},
      {parameter("norm", 4), parameter("head", 8, DType::bf16, "key")},
  }));
  std::vector<std::string> names;
  blocks.for_each([&](BlockTensor found) {
    names.push_back(blocks.name_of(found));
    auto const again = blocks.find(names.back());
    CHECK(again.block == found.block);
    CHECK(again.tensor == found.tensor);
  });
  CHECK(names == std::vector<std::string>{"0.table", "2.norm"});
  CHECK(blocks.name_of(LayerId(2), 1) == "0.table");
  CHECK(error_of([&] { (void)blocks.find("2.head"); }).message() == "there is no parameter 2.head");
  for (auto const& [layer, index] : {std::pair{LayerId(0), 1}, {LayerId(3), 0}, {LayerId(), 0}}) {
    CHECK(error_of([&] { (void)blocks.name_of(layer, static_cast<std::size_t>(index)); }).code() ==
          Errc::invalid_argument);
  }
}

TEST_CASE("a shared tensor is its own block, used by each of its layers") {
  auto const blocks = form_blocks(model_of({
      {parameter("table", 8, DType::bf16, "key")},
      {parameter("own", 2)},
      {parameter("norm", 4), parameter("head", 8, DType::bf16, "key"), parameter("bias", 5)},
  }));
  REQUIRE(blocks.blocks.size() == 3);
  CHECK(blocks.blocks[0].specs.size() == 1);
  CHECK(blocks.blocks[0].specs[0].tensor.name == "table");
  CHECK(layers_of(blocks, 0) == std::vector<std::size_t>{0, 2});
  CHECK(layers_of(blocks, 2) == std::vector<std::size_t>{2});
  CHECK(blocks.parameter_count() == 8 + 2 + 4 + 5);

  // Uses are in layer order; within a layer, in order of first mention.
  REQUIRE(blocks.uses.size() == 4);
  CHECK(blocks.layer_uses[2] == std::vector{BlockUseId(2), BlockUseId(3)});
  CHECK(blocks.uses[2].block == BlockId(2));
  CHECK(blocks.uses[3].block == BlockId(0));
  auto const& places = blocks.places[2];
  REQUIRE(places.size() == 3);
  CHECK(places[0].use == BlockUseId(2));
  CHECK(places[0].tensor == 0);
  CHECK(places[1].use == BlockUseId(3));
  CHECK(places[1].tensor == 0);
  CHECK(places[2].use == BlockUseId(2));
  CHECK(places[2].tensor == 1);
}

TEST_CASE("a layer may share several tensors, and use one of them twice") {
  auto const blocks = form_blocks(model_of({
      {parameter("a", 8, DType::f32, "x"), parameter("b", 8, DType::f32, "x")},
      {parameter("c", 3, DType::f32, "y"), parameter("d", 8, DType::f32, "x")},
      {parameter("e", 3, DType::f32, "y")},
  }));
  REQUIRE(blocks.blocks.size() == 2);
  CHECK(layers_of(blocks, 0) == std::vector<std::size_t>{0, 1});
  CHECK(layers_of(blocks, 1) == std::vector<std::size_t>{1, 2});
  CHECK(blocks.blocks[0].specs.size() == 1);
  CHECK(blocks.places[0][0].use == blocks.places[0][1].use);
  CHECK(blocks.places[0][1].tensor == 0);
  CHECK(blocks.parameter_count() == 11);
}

TEST_CASE("sharing layers must agree on shape, type and frozen flag") {
  auto frozen = parameter("b", 8, DType::f32, "x");
  frozen.frozen = true;
  for (auto const& other :
       {parameter("b", 9, DType::f32, "x"), parameter("b", 8, DType::bf16, "x"), frozen}) {
    auto const error = error_of(
        [&] { return form_blocks(model_of({{parameter("a", 8, DType::f32, "x")}, {other}})); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(
        error.message() ==
        "layer 1 (toy): parameter b differs in shape, type or being frozen from the one it shares "
        "as 'x'");
  }
}

TEST_CASE("parameters must be fp32, bf16 or fp16") {
  for (auto const dtype : {DType::f64, DType::i32, DType::i64, DType::u8}) {
    auto const error =
        error_of([&] { return form_blocks(model_of({{parameter("a", 8, dtype)}})); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(error.message() == "layer 0 (toy): parameter a is " + std::string(name_of(dtype)) +
                                 "; parameters are f32, bf16 or f16");
  }
}

TEST_CASE("the frozen parameters of a layer are a separate block without a gradient sum") {
  auto frozen = parameter("b", 4, DType::f16);
  frozen.frozen = true;
  auto const blocks = form_blocks(
      model_of({{parameter("a", 8), frozen, parameter("c", 2)}, {parameter("d", 8)}}), true);
  REQUIRE(blocks.blocks.size() == 3);
  CHECK(blocks.layer_uses[0].size() == 2);
  CHECK(blocks.trains(BlockUseId(0)));
  CHECK_FALSE(blocks.trains(BlockUseId(1)));
  CHECK(blocks.blocks[0].specs.size() == 2);
  CHECK(blocks.blocks[1].specs.front().tensor.name == "b");
  CHECK(blocks.blocks[0].sums_gradient);
  CHECK_FALSE(blocks.blocks[1].sums_gradient);
  CHECK(blocks.blocks[2].sums_gradient);
}

TEST_CASE("only gradients that are sums are kept in the accumulation type") {
  ModelDescription const model = model_of({{parameter("a", 8, DType::bf16, "x")},
                                           {parameter("b", 8, DType::bf16)},
                                           {parameter("c", 8, DType::bf16, "x")}});
  auto const type_of = [](ParameterBlock const& block) { return block.host_gradient()[0].dtype; };
  auto const once = form_blocks(model);
  CHECK(type_of(once.blocks[0]) == DType::f32);  // two uses
  CHECK(type_of(once.blocks[1]) == DType::bf16);
  auto const often = form_blocks(model, true);
  CHECK(type_of(often.blocks[0]) == DType::f32);
  CHECK(type_of(often.blocks[1]) == DType::f32);
}

TEST_CASE("sums of the declared type are kept as gradients land") {
  ModelDescription const model =
      model_of({{parameter("a", 8, DType::bf16)}, {parameter("b", 8, DType::f32)}});
  auto const blocks = form_blocks(model, true, StateType::declared);
  CHECK(blocks.blocks[0].sums_gradient);
  CHECK(blocks.blocks[0].host_gradient()[0].dtype == DType::bf16);
  CHECK(blocks.blocks[1].host_gradient()[0].dtype == DType::f32);
}

}  // namespace parameter_blocks_test
