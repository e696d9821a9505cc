// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/model/model_description.hpp>

#include <roundpipe/model/sequential.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/layer_archetype.hpp>
#include <support/made_model.hpp>
#include <support/toy_model.hpp>
#include <support/toy_skips.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace model_description_test {

namespace {

using namespace roundpipe;
using test::error_of;

struct Stream {};

/// A layer with the given tables and nothing else.
struct Tables : test::LayerArchetype<Stream> {
  Tables(TensorTable in, TensorTable out)
      : LayerArchetype(0), in_(std::move(in)), out_(std::move(out)) {}
  TensorTable input(BatchShape) const { return in_; }
  TensorTable boundary(BatchShape) const { return out_; }

 private:
  TensorTable in_;
  TensorTable out_;
};
struct LossTables : Tables {
  using Tables::Tables;
  std::int64_t loss_terms(std::span<HostTensor const>, BatchShape) const { return 1; }
};
struct Telling : Tables {
  using Tables::Tables;
  TensorTable results(BatchShape) const { return {{"told", {1}, DType::f32}}; }
};

TensorTable const none;
TensorTable const two{{"a", {2, 3}, DType::f32}, {"b", {4}, DType::i32}};

}  // namespace

TEST_CASE("a description holds the tables of each layer at the capacity") {
  auto const model = test::toy_model({.dense = 2, .drops = true});
  auto const description = describe(model, {2, 5});
  REQUIRE(description.size() == 6);
  CHECK(description.capacity == BatchShape{2, 5});
  auto const& input = description.layers[0];
  CHECK(input.name == "toy input");
  CHECK(input.parameters.size() == 1);
  CHECK(input.input.empty());
  CHECK(input.boundary == TensorTable{{"hidden", {2, 5, 4}, DType::f32}});
  CHECK(input.side_inputs == TensorTable{{"values", {2, 5, 3}, DType::f32}});
  CHECK(input.results.empty());
  CHECK_FALSE(input.is_loss);
  auto const& dense = description.layers[2];
  CHECK(dense.footprint.saved_bytes == 512);
  CHECK(dense.work.forward_flops == 2 * 10 * 4 * 4);
  CHECK(dense.side_inputs.empty());
  auto const& loss = description.layers[5];
  CHECK(loss.is_loss);
  CHECK(loss.side_inputs.size() == 2);
  CHECK(loss.results.size() == 1);
  CHECK(loss.work.forward_flops == 0);
  CHECK(description.name_of(5) == "layer 5 (toy loss)");
}

TEST_CASE("missing opt-ins of a layer are empty") {
  auto const facts = facts_of(test::LayerArchetype<Stream>(0), {1, 1});
  CHECK(facts.name == "layer");
  CHECK(facts.side_inputs.empty());
  CHECK(facts.results.empty());
  CHECK(facts.work.backward_flops == 0);
  CHECK_FALSE(facts.is_loss);
  CHECK(facts_of(test::FullLayerArchetype<Stream>(0), {1, 1}).is_loss);
}

TEST_CASE("boundaries match by shape and type, whatever their names") {
  TensorTable const renamed{{"x", {2, 3}, DType::f32}, {"y", {4}, DType::i32}};
  CHECK_NOTHROW(
      static_cast<void>(describe(Sequential{Tables(none, two), LossTables(renamed, none)}, {})));

  TensorTable const fewer{{"a", {2, 3}, DType::f32}};
  TensorTable const reshaped{{"a", {3, 2}, DType::f32}, {"b", {4}, DType::i32}};
  TensorTable const retyped{{"a", {2, 3}, DType::bf16}, {"b", {4}, DType::i32}};
  for (auto const& other : {none, fewer, reshaped, retyped}) {
    auto const error = error_of(
        [&] { return describe(Sequential{Tables(none, two), LossTables(other, none)}, {}); });
    CHECK(error.code() == Errc::boundary_mismatch);
    CHECK(error.message() == "layer 1 (layer) takes " + to_string(other) +
                                 ", but layer 0 (layer) hands over {a f32[2, 3], b i32[4]}");
  }
}

TEST_CASE("the first layer takes no boundary and the last hands none over") {
  auto const first = error_of([] { return describe(Sequential{LossTables(two, none)}, {}); });
  CHECK(first.code() == Errc::boundary_mismatch);
  CHECK(first.message().find("side inputs") != std::string::npos);
  auto const last = error_of([] { return describe(Sequential{LossTables(none, two)}, {}); });
  CHECK(last.code() == Errc::boundary_mismatch);
  CHECK(last.message() ==
        "layer 0 (layer) is the last layer, but hands over {a f32[2, 3], b i32[4]}");
}

TEST_CASE("the loss is the last layer, and only the last") {
  auto const missing =
      error_of([] { return describe(Sequential{Tables(none, none), Tables(none, none)}, {}); });
  CHECK(missing.code() == Errc::invalid_argument);
  CHECK(missing.message() == "layer 1 (layer) is the model's last layer, but no loss layer");
  auto const early = error_of(
      [] { return describe(Sequential{LossTables(none, none), LossTables(none, none)}, {}); });
  CHECK(early.code() == Errc::invalid_argument);
  CHECK(early.message() == "layer 0 (layer) is a loss layer, but not the model's last layer");
}

TEST_CASE("only the last layer has results") {
  auto const error = error_of(
      [] { return describe(Sequential{Telling(none, none), LossTables(none, none)}, {}); });
  CHECK(error.code() == Errc::unsupported);
}

TEST_CASE("two parameters of a layer have two names") {
  struct Twins : LossTables {
    Twins() : LossTables(none, none) {}
    ParameterTable parameters() const {
      return {{{"weight", {2}, DType::f32}},
              {{"bias", {2}, DType::f32}},
              {{"weight", {3}, DType::f32}}};
    }
  };
  auto const error = error_of([] { return describe(Sequential{Twins{}}, {}); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() ==
        "layer 0 (layer): Layer::parameters breaks rule 9: two parameters are called 'weight'");
}

TEST_CASE("counts of FLOPs are finite and not negative") {
  struct Counting : LossTables {
    explicit Counting(FlopCount count) : LossTables(none, none), count_(std::move(count)) {}
    FlopCount work(BatchShape) const { return count_; }

   private:
    FlopCount count_;
  };
  auto const infinity = std::numeric_limits<double>::infinity();
  for (auto const& count : {FlopCount{-1, 1, {}},
                            FlopCount{1, -1, {}},
                            FlopCount{infinity, 1, {}},
                            FlopCount{1, 1, {1, -1}}}) {
    auto const error = error_of([&] { return describe(Sequential{Counting(count)}, {}); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(error.message().find("Layer::work breaks rule 9") != std::string::npos);
  }
  CHECK_NOTHROW(static_cast<void>(describe(Sequential{Counting({0, 0, {}})}, {})));
}

TEST_CASE("save levels ascend to all that is saved, behind whole tensors") {
  struct Saving : LossTables {
    explicit Saving(std::vector<Bytes> levels)
        : LossTables(none, none), levels_(std::move(levels)) {}
    Footprint footprint(BatchShape) const { return {1000, 0}; }
    std::vector<Bytes> save_levels(BatchShape) const { return levels_; }

   private:
    std::vector<Bytes> levels_;
  };
  auto const description = describe(Sequential{Saving({256, 512, 1000})}, {});
  CHECK(description.layers[0].save_levels == std::vector<Bytes>{0, 256, 512, 1000});
  for (auto const& levels : {std::vector<Bytes>{256, 512},
                             std::vector<Bytes>{256, 1256},
                             std::vector<Bytes>{512, 256, 1000},
                             std::vector<Bytes>{100, 1000}}) {
    auto const error = error_of([&] { return describe(Sequential{Saving(levels)}, {}); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(error.message().find("Layer::save_levels breaks rule 10") != std::string::npos);
  }
}

TEST_CASE("a model that is made at run time has at least one layer") {
  test::MadeModel<LossTables> model;
  auto const error = error_of([&] { return describe(model, {}); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() == "Model::layer_count breaks rule 1: it is 0");
  model.layers.push_back(LossTables(none, none));
  CHECK(describe(model, {}).size() == 1);
}

TEST_CASE("the extents of a capacity are positive") {
  for (auto const shape : {BatchShape{0, 1}, BatchShape{1, 0}, BatchShape{-1, 1}}) {
    CHECK(error_of([&] { return describe(Sequential{LossTables(none, none)}, shape); }).code() ==
          Errc::invalid_argument);
  }
}

TEST_CASE("carried tensors are the last ones of input and boundary, and alike") {
  struct Carrier : test::ToyJoin {
    Carries claim{};
    TensorTable boundary(BatchShape shape) const {
      return {{"own", {shape.rows}}, {"skip", {shape.rows, shape.length, 4}}};
    }
    Carries carries() const { return claim; }
  };
  auto const refusal = [](Carries claim) {
    Carrier carrier;
    carrier.claim = claim;
    ModelDescription const model{{2, 3}, {facts_of(carrier, {2, 3})}};
    return test::error_of([&] { detail::check_layer(model, 0); }).message();
  };
  CHECK(refusal({1, 1}) == "nothing was thrown");
  CHECK(refusal({1, 0}) == "nothing was thrown");
  for (auto const claim : {Carries{2, 1}, Carries{3, 0}, Carries{0, 1}}) {
    CHECK(test::contains(refusal(claim), "layer 0 (toy join): Layer::carries"));
    CHECK(test::contains(refusal(claim), "rule 12"));
  }
}

TEST_CASE("gradients exist for floating tensors only, packed without gaps for the others") {
  TensorTable const boundary{{"a", {3}, DType::i64},
                             {"b", {5}, DType::bf16},
                             {"c", {2}, DType::u8},
                             {"d", {7}, DType::f32}};
  auto const gradients = gradient_table(boundary);
  CHECK(gradients == TensorTable{{"b", {5}, DType::bf16}, {"d", {7}, DType::f32}});
  CHECK(gradients.offset(1) == 256);
  CHECK(gradient_table(none).bytes() == 0);
  CHECK(gradients.bytes() == 2 * 256);  // each is aligned
  CHECK(gradient_bytes(boundary) == 256 + 7 * 4);
  CHECK(gradient_bytes(boundary) == gradients.content_bytes());
  CHECK(gradient_bytes(none) == 0);
}

}  // namespace model_description_test
