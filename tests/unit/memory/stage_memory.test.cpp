// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/memory/stage_memory.hpp>

#include <roundpipe/memory/stage_budget.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace stage_memory_test {

namespace {

using namespace roundpipe;
using Random = std::mt19937_64;

std::vector<LayerBytes> random_layers(Random& random, std::size_t count) {
  auto const bytes = [&] { return random() % 4 == 0 ? 0 : 4 * (random() % 700); };
  std::vector<LayerBytes> layers(count);
  for (auto& layer : layers) {
    layer = {bytes(), 0, bytes(), bytes(), bytes()};
    layer.gradient_bytes = layer.parameter_bytes;  // in fp32 throughout
  }
  layers.back().boundary_bytes = 0;
  return layers;
}

/// A model whose tensors have these sizes.
ModelDescription model_of(std::vector<LayerBytes> const& layers) {
  auto const table = [](Bytes bytes) {
    return bytes == 0 ? TensorTable{}
                      : TensorTable{{"t", {static_cast<std::int64_t>(bytes / 4)}, DType::f32}};
  };
  ModelDescription model;
  for (auto const& layer : layers) {
    LayerFacts facts;
    facts.name = "plain";
    facts.input = model.layers.empty() ? TensorTable{} : model.layers.back().boundary;
    facts.boundary = table(layer.boundary_bytes);
    facts.footprint = {layer.saved_bytes, layer.workspace_bytes};
    facts.is_loss = model.layers.size() + 1 == layers.size();
    for (auto const& spec : table(layer.parameter_bytes)) {
      facts.parameters.push_back({spec, Initial::zeros(), DecayGroup::exempt});
    }
    model.layers.push_back(std::move(facts));
  }
  return model;
}

/// The smallest maximum over the stages of any partition, found by trying all cuts.
Bytes least_by_trying(StageMemory const& memory) {
  auto const layers = memory.layers();
  auto best = std::numeric_limits<Bytes>::max();
  for (std::size_t first = 0; first < layers; ++first) {
    auto largest = memory.bytes(StageDirection::backward, {first, layers - first});
    for (auto const direction : {StageDirection::forward, StageDirection::backward}) {
      auto least = first == 0 ? 0 : std::numeric_limits<Bytes>::max();
      for (std::uint32_t cuts = 0; first > 0 && cuts < (1U << (first - 1)); ++cuts) {
        Bytes stages = 0;
        std::size_t begin = 0;
        for (std::size_t end = 1; end <= first; ++end) {
          if (end == first || (cuts >> (end - 1) & 1U) != 0) {
            stages = std::max(stages, memory.bytes(direction, {begin, end - begin}));
            begin = end;
          }
        }
        least = std::min(least, stages);
      }
      largest = std::max(largest, least);
    }
    best = std::min(best, largest);
  }
  return best;
}

}  // namespace

TEST_CASE("plain sizes and a model with tensors of these sizes need the same memory") {
  Random random(1);
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    auto const layers = random_layers(random, 1 + random() % 9);
    auto const model = model_of(layers);
    auto const blocks = form_blocks(model);
    StageBudget const budget(model, blocks);
    Buffering const buffering{1 + random() % 2, 1 + random() % 2, 1 + random() % 4};
    StageMemory const memory(layers, buffering);
    REQUIRE(memory.layers() == layers.size());
    for (std::size_t first = 0; first < layers.size(); ++first) {
      for (std::size_t count = 1; first + count <= layers.size(); ++count) {
        CAPTURE(first);
        CAPTURE(count);
        LayerRange const range{first, count};
        REQUIRE(memory.bytes(StageDirection::backward, range) ==
                budget.bytes(StageDirection::backward, range, buffering));
        if (range.end() < layers.size()) {  // the last stage never runs forward only
          REQUIRE(memory.bytes(StageDirection::forward, range) ==
                  budget.bytes(StageDirection::forward, range, buffering));
        }
      }
    }
  }
}

TEST_CASE("the terms of a stage match the table") {
  std::vector<LayerBytes> const layers{
      {256, 512, 1024, 2048, 4096}, {256, 512, 3072, 2048, 256}, {256, 512, 0, 256, 256}};
  StageMemory const memory(layers, {3, 5, 7});
  using enum StageDirection;
  CHECK(memory.bytes(forward, {0, 2}) == 3 * 512 + 7 * 3072 + 2 * 3072 + 4096);
  CHECK(memory.bytes(forward, {1, 1}) == 3 * 256 + 7 * (1024 + 3072) + 2 * 3072 + 256);
  CHECK(memory.bytes(backward, {1, 1}) ==
        3 * 256 + 5 * 512 + 7 * (1024 + 3072 + 1024) + 2048 + 2 * 3072 + 256);
  CHECK(memory.bytes(backward, {0, 2}) ==
        3 * 512 + 5 * 1024 + 7 * 3072 + (4096 + 1024) + 2 * 3072 + 4096);
  CHECK(memory.bytes(backward, {2, 1}) ==
        3 * 256 + 5 * 512 + 7 * (3072 + 3072 + 256) + 256 + 0 + 256);
}

TEST_CASE("the smallest memory belongs to the best of all partitions") {
  Random random(2);
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    StageMemory const memory(random_layers(random, 1 + random() % 9), {2, 1, 1 + random() % 3});
    CHECK(memory.least() == least_by_trying(memory));
  }
}

TEST_CASE("stages with unknown layers are refused") {
  StageMemory const memory(std::vector<LayerBytes>(3));
  for (LayerRange const range : {LayerRange{0, 0}, {3, 1}, {1, 3}, {4, 0}}) {
    CHECK(test::error_of([&] { (void)memory.bytes(StageDirection::forward, range); }).code() ==
          Errc::invalid_argument);
  }
}

}  // namespace stage_memory_test
