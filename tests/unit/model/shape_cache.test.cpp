// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/model/shape_cache.hpp>

#include <roundpipe/model/sequential.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/layer_archetype.hpp>
#include <support/toy_model.hpp>
#include <support/toy_skips.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace shape_cache_test {

namespace {

using namespace roundpipe;
using test::error_of;

struct Stream {};

/// The only layer of a model; its tables depend on the extents.
struct Adaptable : test::LossLayerArchetype<Stream> {
  using TableOf = std::function<TensorTable(BatchShape)>;

  Adaptable() : LossLayerArchetype(0) {}
  TensorTable side_inputs(BatchShape shape) const { return side_inputs_of(shape); }
  TensorTable results(BatchShape shape) const { return results_of(shape); }
  Footprint footprint(BatchShape shape) const { return footprint_of(shape); }
  std::vector<Bytes> save_levels(BatchShape shape) const {
    auto const saved = footprint(shape).saved_bytes;
    return levels_of ? levels_of(shape) : std::vector(saved > 0 ? 1 : 0, saved);
  }

  TableOf side_inputs_of = [](BatchShape) { return TensorTable{}; };
  TableOf results_of = [](BatchShape) { return TensorTable{}; };
  std::function<Footprint(BatchShape)> footprint_of = [](BatchShape) { return Footprint{}; };
  std::function<std::vector<Bytes>(BatchShape)> levels_of{};  ///< None: all or nothing.
};

BatchShape const capacity{4, 8};
BatchShape const smaller{4, 2};

/// The message of the error for smaller extents.
std::string refusal(Adaptable layer) {
  Sequential const model{std::move(layer)};
  ShapeCache shapes(model, capacity);
  auto const error = error_of([&] { return &shapes.at(smaller); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error_of([&] { return &shapes.at(smaller); }).code() == Errc::invalid_argument);
  return error.message();
}

}  // namespace

TEST_CASE("a model is described once for each set of extents") {
  auto const model = test::toy_model({});
  ShapeCache shapes(model, {4, 8});
  auto const& whole = shapes.capacity();
  CHECK(whole.model.capacity == BatchShape{4, 8});
  CHECK(whole.batch.tensors[0].shape == Shape{4, 8, 3});
  CHECK(&shapes.at({4, 8}) == &whole);
  auto const& part = shapes.at({2, 3});
  CHECK(part.model.layers[1].boundary[0].shape == Shape{2, 3, 4});
  CHECK(part.batch.tensors[0].shape == Shape{2, 3, 3});
  for (std::int64_t rows = 1; rows <= 4; ++rows) {
    CHECK(shapes.at({rows, 1}).model.capacity == BatchShape{rows, 1});
  }
  CHECK(&shapes.at({2, 3}) == &part);
}

TEST_CASE("extents that do not fit are refused with both numbers") {
  auto const model = test::toy_model({});
  ShapeCache shapes(model, {4, 8});
  auto const error = error_of([&] { return &shapes.at({4, 9}); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() ==
        "a micro-batch of 4 x 9 (rows x positions) does not fit into the capacity of 4 x 8 (rows x "
        "positions)");
  CHECK(error_of([&] { return &shapes.at({0, 1}); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { ShapeCache(model, {0, 1}); }).code() == Errc::invalid_argument);
}

TEST_CASE(
    "a layer that needs more bytes for smaller extents is refused, because memory is planned "
    "once") {
  Adaptable saving;
  saving.footprint_of = [](BatchShape shape) {
    return Footprint{shape.length == 2 ? 11U : 10U, 0};
  };
  CHECK(refusal(saving) ==
        "layer 0 (layer): Layer::footprint breaks rule 6: at 4 x 2 (rows x positions) its saved "
        "activations take 11 bytes, at capacity only 10");
  Adaptable levelled;
  levelled.footprint_of = [](BatchShape) { return Footprint{1024, 0}; };
  levelled.levels_of = [](BatchShape shape) {
    return std::vector<Bytes>{shape.length == 2 ? 512U : 256U, 1024};
  };
  CHECK(refusal(levelled).find("save levels take 512 bytes") != std::string::npos);
  levelled.levels_of = [](BatchShape shape) {
    return std::vector<Bytes>{shape.length == 2 ? 256U : 512U, 1024};
  };
  CHECK(refusal(levelled).find("save levels take 768 bytes") != std::string::npos);
  levelled.levels_of = [](BatchShape shape) {
    return shape.length == 2 ? std::vector<Bytes>{1024} : std::vector<Bytes>{256, 1024};
  };
  CHECK(refusal(levelled) ==
        "layer 0 (layer): Layer::save_levels breaks rule 10: at 4 x 2 (rows x positions) its save "
        "levels are 1, at capacity 2");
  Adaptable nothing;  // saves nothing of small extents
  nothing.footprint_of = [](BatchShape shape) {
    return Footprint{shape.length == 2 ? 0U : 1024U, 0};
  };
  Sequential const model{nothing};
  ShapeCache shapes(model, capacity);
  CHECK(shapes.at(smaller).model.layers[0].save_levels == std::vector<Bytes>{0});
  Adaptable working;
  working.footprint_of = [](BatchShape shape) { return Footprint{0, shape.length == 2 ? 1U : 0U}; };
  CHECK(refusal(working).find("workspace take 1 bytes") != std::string::npos);
  Adaptable showing;
  showing.results_of = [](BatchShape shape) {
    return TensorTable{{"r", {shape.length == 2 ? 100 : 1}, DType::f32}};
  };
  CHECK(refusal(showing).find("results take 512 bytes") != std::string::npos);
}

TEST_CASE("a layer whose tensors change in number, name or type is refused") {
  auto const reading = [](TensorTable few) {
    Adaptable layer;
    layer.side_inputs_of = [few = std::move(few)](BatchShape shape) {
      return shape.length == 2 ? few : TensorTable{{"a", {9}, DType::i32}, {"b", {9}, DType::i32}};
    };
    return refusal(layer);
  };
  CHECK(reading({{"a", {9}, DType::i32}}) ==
        "layer 0 (layer): Layer::side_inputs breaks rule 6: at 4 x 2 (rows x positions) its side "
        "inputs are {a i32[9]}, at capacity {a i32[9], b i32[9]}; only the extents may differ");
  CHECK_FALSE(reading({{"a", {9}, DType::i32}, {"b", {9}, DType::u8}}).empty());
  CHECK_FALSE(reading({{"b", {9}, DType::i32}, {"a", {9}, DType::i32}}).empty());
}

TEST_CASE("a carried tensor, and the tensors before it, fit by themselves at smaller extents") {
  // The tables as a whole never grow.
  struct Trade : test::ToyMark {
    bool carried_grows = true;
    TensorTable input(BatchShape shape) const {
      auto const small = shape == smaller;
      return {{"own", {small == carried_grows ? 64 : 128}},
              {"carried", {small == carried_grows ? 128 : 64}}};
    }
    TensorTable boundary(BatchShape shape) const { return input(shape); }
    Carries carries() const { return {.tensors = 1, .gradients = 1}; }
  };
  struct Source : Trade {
    TensorTable input(BatchShape) const { return {}; }
    TensorTable boundary(BatchShape shape) const { return Trade::input(shape); }
    Carries carries() const { return {}; }
  };
  struct Sink : test::ToyLoss {
    Trade trade{};
    TensorTable input(BatchShape shape) const { return trade.input(shape); }
  };
  for (bool const carried_grows : {true, false}) {
    Trade trade;
    trade.carried_grows = carried_grows;
    Source source;
    source.carried_grows = carried_grows;
    Sink sink;
    sink.trade = trade;
    Sequential const model{source, trade, sink};
    ShapeCache shapes(model, capacity);
    auto const error = error_of([&] { return &shapes.at(smaller); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(test::contains(error.message(), "layer 1 (toy mark): Layer::input breaks rule 6: "));
    CHECK(test::contains(error.message(),
                         carried_grows ? "its carried tensors take 512 bytes, at capacity only 256"
                                       : "its tensors before the carried ones take 512 bytes"));
  }
}

}  // namespace shape_cache_test
