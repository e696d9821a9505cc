// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Compares whole layers on the device with the same layers in double on the host (layers.host.cpp).

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/ops/cuda_ops.cuh>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/nn/language_model_head.hpp>
#include <roundpipe/nn/token_embedding.hpp>
#include <roundpipe/nn/transformer_block.hpp>
#include <roundpipe/testing/check_layer.hpp>
#include <support/brief_test.hpp>
#include <support/cuda_resources.hpp>
#include <support/device_values.hpp>
#include <support/element_oracle.hpp>
#include <support/layer_oracle.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace roundpipe;
using test::DeviceValues;
using test::LayerCase;
using test::LayerValues;
using Kind = LayerCase::Kind;
using Ops = cu::CudaOps;
using Stream = cu::CudaBackend::Stream;

/// A list of a layer's tensors; tensors without values are poisoned.
class TensorList {
 public:
  explicit TensorList(TensorTable const& table, LayerValues::Lists const& values = {}) {
    for (auto const& spec : table) {
      add(spec.shape, spec.dtype, values);
    }
  }
  /// Parameters, or their gradients; frozen parameters have none.
  TensorList(ParameterTable const& table, bool gradients, LayerValues::Lists const& values) {
    for (auto const& spec : table) {
      auto const type = spec.tensor.dtype;
      add(spec.tensor.shape, gradients ? accumulation_type(type) : type, values);
      if (gradients && spec.frozen) {
        views_.back() = {};
      }
    }
  }

  [[nodiscard]] std::vector<DeviceTensor> const& views() const noexcept { return views_; }
  [[nodiscard]] LayerValues::Lists values() const {
    LayerValues::Lists lists;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      lists.push_back(views_[i].present() ? tensors_[i].values() : std::vector<double>{});
    }
    return lists;
  }
  [[nodiscard]] std::vector<std::vector<std::byte>> bits() const {
    std::vector<std::vector<std::byte>> lists;
    for (auto const& tensor : tensors_) {
      lists.push_back(tensor.bits());
    }
    return lists;
  }

 private:
  void add(Shape const& shape, DType type, LayerValues::Lists const& values) {
    auto const i = tensors_.size();
    if (i < values.size() && !values[i].empty()) {
      tensors_.emplace_back(shape, type, values[i]);
    } else {
      tensors_.emplace_back(shape, type);
    }
    views_.push_back(tensors_.back().tensor());
  }

  std::vector<DeviceValues> tensors_;
  std::vector<DeviceTensor> views_;
};

/// The results of both passes of \p layer for the operands in \p host.
template <class L>
LayerValues device_passes(L const& layer, LayerCase const& c, LayerValues const& host) {
  cu::CudaBackend backend(cu::CudaBackendOptions{.devices = {DeviceId(0)},
                                                 .device_memory_bytes = 256_MiB,
                                                 .resources = test::shared_resources()});
  auto stream = backend.make_stream(DeviceId(0), LaneKind::compute);
  auto const facts = facts_of(layer, c.shape);
  TensorList const parameters(facts.parameters, false, host.parameters);
  TensorList const inputs(facts.input, host.inputs);
  TensorList const output_gradients(facts.boundary, host.output_gradients);
  TensorList const sums(facts.parameters, true, host.sums);
  TensorList const results(facts.results);
  TensorList const input_gradients(facts.input);
  test::PoisonedScratch const saved(facts.footprint.saved_bytes);
  test::PoisonedScratch const workspace(facts.footprint.workspace_bytes);
  DeviceValues const loss({1}, DType::f64);
  auto const indices = test::device_indices(c.indices);

  auto call = c.call();
  LayerTensors tensors;
  tensors.parameters = parameters.views();
  tensors.inputs = inputs.views();
  if (!c.indices.empty()) {
    tensors.side_inputs = {indices.tensor()};
  }
  tensors.loss = loss.tensor().template as<double>();
  tensors.workspace = workspace;
  LayerValues values;

  TensorList const evaluated(facts.boundary);
  tensors.outputs = evaluated.views();
  tensors.results = results.views();
  ForwardContext<Stream> forward(stream, call, tensors);
  layer.forward(forward);
  stream.synchronize();
  values.results = results.values();
  values.loss = loss.values()[0];

  TensorList const outputs(facts.boundary);
  tensors.outputs = outputs.views();
  tensors.results.clear();
  tensors.saved = saved;
  call.saving = true;
  layer.forward(forward);
  tensors.output_gradients = output_gradients.views();
  tensors.input_gradients = input_gradients.views();
  tensors.parameter_gradients = sums.views();
  BackwardContext<Stream> backward(stream, call, tensors);
  layer.backward(backward);
  stream.synchronize();
  CHECK(outputs.bits() == evaluated.bits());
  values.outputs = outputs.values();
  values.input_gradients = input_gradients.values();
  values.parameter_gradients = sums.values();
  values.training_loss = loss.values()[0];
  return values;
}

LayerValues device_passes(LayerCase const& c, LayerValues const& host) {
  switch (c.kind) {
    case Kind::embedding:
      return device_passes(nn::TokenEmbedding<Ops>(c.config), c, host);
    case Kind::head:
      return device_passes(nn::LanguageModelHead<Ops>(c.config), c, host);
    default:
      return device_passes(
          nn::TransformerBlock<Ops>(c.config, c.kind == Kind::frozen_block), c, host);
  }
}

void subtract(LayerValues::Lists& lists, LayerValues::Lists const& others) {
  for (std::size_t i = 0; i < lists.size(); ++i) {
    for (std::size_t j = 0; j < lists[i].size(); ++j) {
      lists[i][j] -= others[i][j];
    }
  }
}

/// The place of the bias of keys among the parameters, or one behind them all. The same shift of
/// all keys changes no softmax, but for their rotations, so the terms of this bias's gradient
/// nearly cancel: its relative error is up to twice that of the other sums.
std::size_t place_of_key_bias(LayerCase const& c) {
  auto const table = nn::TransformerBlock<Ops>(c.config).parameters();
  auto const found = std::ranges::find(
      table, "self_attn.k_proj.bias", [](auto const& spec) { return spec.tensor.name; });
  return static_cast<std::size_t>(found - table.begin());
}

/// Checks that no tensor differs from \p expected by more than \p most, number \p twice by more
/// than two times that. \returns the largest difference.
double check_close(char const* what,
                   LayerValues::Lists const& values,
                   LayerValues::Lists const& expected,
                   double most,
                   std::size_t twice = std::numeric_limits<std::size_t>::max()) {
  REQUIRE(values.size() == expected.size());
  double furthest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    INFO(what);
    CAPTURE(i);
    REQUIRE(values[i].size() == expected[i].size());
    if (!values[i].empty()) {
      auto const error = test::relative_error(values[i], expected[i]);
      CHECK(error <= (i == twice ? 2 * most : most));
      furthest = std::max(furthest, error);
    }
  }
  return furthest;
}

/// A layer rounds to its storage type about ten times, and independent errors add up as the root of
/// their squares.
void check_layer(LayerCase const& c) {
  auto host = test::host_passes(c);
  auto device = device_passes(c, host);
  auto const rounding = test::tolerance(c.config.storage);
  auto const forward = check_close("output", device.outputs, host.outputs, 2 * rounding);
  auto const result = check_close("result", device.results, host.results, 2 * rounding);
  if (c.kind == Kind::head) {
    CHECK(device.loss == doctest::Approx(host.loss).epsilon(rounding));
    CHECK(device.training_loss == doctest::Approx(host.training_loss).epsilon(rounding));
  } else {
    CHECK(std::isnan(device.training_loss));  // nothing has written it
  }
  auto const input =
      check_close("input gradient", device.input_gradients, host.input_gradients, 3 * rounding);
  subtract(host.parameter_gradients, host.sums);
  subtract(device.parameter_gradients, host.sums);
  auto const parameter = check_close("parameter gradient",
                                     device.parameter_gradients,
                                     host.parameter_gradients,
                                     3 * rounding,
                                     place_of_key_bias(c));
  MESSAGE(std::string(name_of(c.config.storage))
          << ": output " << forward << ", result " << result << ", input gradient " << input
          << ", parameter gradient " << parameter);
}

nn::TransformerConfig small(DType type) {
  nn::TransformerConfig config;
  config.vocabulary = 203;
  config.hidden = 96;
  config.layers = 4;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 32;
  config.intermediate = 160;
  config.storage = config.parameter = type;
  return config;
}

std::vector<std::int32_t> indices_below(std::int32_t end, BatchShape shape) {
  std::vector<std::int32_t> indices(static_cast<std::size_t>(shape.positions()));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    indices[i] = static_cast<std::int32_t>(i * i * 7 + i / 3) % end;
  }
  return indices;
}

constexpr DType types[] = {DType::f32, DType::bf16, DType::f16};

template <class L>
void expect_sound(L const& layer) {
  cu::CudaBackend backend(cu::CudaBackendOptions{.devices = {DeviceId(0)},
                                                 .device_memory_bytes = 256_MiB,
                                                 .resources = test::shared_resources()});
  testing::LayerCheckOptions options;
  options.integer = [](TensorSpec const&, std::size_t i) {
    return static_cast<std::int64_t>(i * 7 % 203);
  };
  options.elements = test::is_brief() ? 1 : 16;
  CHECK_NOTHROW(testing::require_sound(layer, backend, options));
}

void expect_sound_embedding(nn::TransformerConfig const& config) {
  expect_sound(nn::TokenEmbedding<Ops>(config));
}
void expect_sound_block(nn::TransformerConfig const& config, bool frozen = false) {
  expect_sound(nn::TransformerBlock<Ops>(config, frozen));
}
void expect_sound_head(nn::TransformerConfig const& config) {
  expect_sound(nn::LanguageModelHead<Ops>(config));
}

/// A type, and whether there is dropout. Without, passes with workspaces of products take most of
/// the time, so only f32 has that.
template <DType type, bool drops>
struct Sound {
  [[nodiscard]] static nn::TransformerConfig config() {
    auto config = small(type);
    config.loss_chunk = 4;  // does not divide the positions
    config.dropout = drops ? 0.25 : 0;
    return config;
  }
  [[nodiscard]] static nn::TransformerConfig adapted() {
    auto adapted = config();
    adapted.lora = {.rank = 16, .alpha = 8, .dropout = adapted.dropout, .targets = {"*"}};
    return adapted;
  }
};
#define ROUNDPIPE_TEST_SOUND                                                   \
  Sound<DType::f32, true>, Sound<DType::f32, false>, Sound<DType::bf16, true>, \
      Sound<DType::f16, true>

}  // namespace

TEST_CASE("an embedding on the device agrees with the host") {
  for (auto const type : types) {
    INFO(std::string(name_of(type)));
    for (auto const dropout : {0.0, 0.25}) {
      auto config = small(type);
      config.dropout = dropout;
      BatchShape const shape{3, 37};
      check_layer({Kind::embedding, config, shape, indices_below(203, shape)});
    }
  }
}

TEST_CASE("a block on the device agrees with the host") {
  using Config = nn::TransformerConfig;
  struct Variant {
    char const* name;
    void (*change)(Config&);
    BatchShape shape{3, 70};
    Kind kind = Kind::block;
  };
  Variant const variants[] = {
      {"grouped queries", [](Config&) {}},
      {"a key head for each query head", [](Config& c) { c.kv_heads = 4; }},
      {"one key head", [](Config& c) { c.kv_heads = 1; }},
      {"norms of queries and keys", [](Config& c) { c.query_key_norm = true; }},
      {"heads wider than hidden over heads", [](Config& c) { c.head_dim = 128; }},
      {"dropout", [](Config& c) { c.dropout = 0.1; }},
      {"sizes that are no multiples of anything",
       [](Config& c) {
         c.hidden = 91;
         c.head_dim = 18;
         c.intermediate = 53;
       },
       {2, 31}},
      {"frozen", [](Config&) {}, {3, 70}, Kind::frozen_block},
      {"biases", [](Config& c) { c.attention_bias = c.output_bias = c.mlp_bias = true; }},
      {"biases of odd sizes",
       [](Config& c) {
         c.attention_bias = c.output_bias = c.mlp_bias = true;
         c.hidden = 91;
         c.head_dim = 18;
         c.intermediate = 53;
         c.dropout = 0.1;
       },
       {2, 31}},
      {"a sliding window", [](Config& c) { c.sliding_window = 20; }},
      {"stretched and amplified rotations",
       [](Config& c) {
         c.rope_scaling = {.kind = nn::RopeScaling::Kind::yarn,
                           .factor = 4,
                           .original_max_position_embeddings = 32};
       }},
      {"everything at once, larger",
       [](Config& c) {
         c.hidden = 256;
         c.heads = 8;
         c.intermediate = 704;
         c.query_key_norm = true;
         c.dropout = 0.1;
         c.rope_theta = 500000;
         c.attention_bias = c.mlp_bias = true;
         c.sliding_window = 100;
         c.rope_scaling = {.kind = nn::RopeScaling::Kind::llama3,
                           .factor = 8,
                           .original_max_position_embeddings = 64};
       },
       {2, 256}},
  };
  for (auto const type : types) {
    INFO(std::string(name_of(type)));
    for (auto const& variant : variants) {
      INFO(std::string(variant.name));
      auto config = small(type);
      variant.change(config);
      check_layer({variant.kind, config, variant.shape, {}});
    }
  }
}

TEST_CASE("a head on the device agrees with the host") {
  BatchShape const shape{3, 37};
  auto const labels = indices_below(203, shape);
  for (auto const type : types) {
    INFO(std::string(name_of(type)));
    auto config = small(type);
    check_layer({Kind::head, config, shape, labels});

    auto padded = labels;  // and chunks that do not divide the positions
    padded[0] = padded[24] = padded[25] = padded[110] = config.padding_label;
    config.loss_chunk = 25;
    check_layer({Kind::head, config, shape, padded});

    config.vocabulary = 1009;  // a prime
    check_layer({Kind::head, config, shape, labels});
  }
}

// Cases of their own, so that slow tools can run them side by side.
TEST_CASE_TEMPLATE("an embedding is sound on the device", T, ROUNDPIPE_TEST_SOUND) {
  expect_sound_embedding(T::config());
}
TEST_CASE_TEMPLATE("a block is sound on the device", T, ROUNDPIPE_TEST_SOUND) {
  expect_sound_block(T::config());
}
TEST_CASE_TEMPLATE("a frozen block is sound on the device", T, ROUNDPIPE_TEST_SOUND) {
  expect_sound_block(T::config(), true);
}
TEST_CASE_TEMPLATE("a head is sound on the device", T, ROUNDPIPE_TEST_SOUND) {
  expect_sound_head(T::config());
}
TEST_CASE_TEMPLATE("a block with adapters is sound on the device", T, ROUNDPIPE_TEST_SOUND) {
  expect_sound_block(T::adapted());
}
TEST_CASE_TEMPLATE("a head with adapters is sound on the device", T, ROUNDPIPE_TEST_SOUND) {
  expect_sound_head(T::adapted());
}
