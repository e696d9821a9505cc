// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/transformer.hpp>

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <support/nn_harness.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace transformer_test {

using namespace roundpipe;
using test::LayerRunner;
using test::read;

nn::TransformerConfig small() {
  nn::TransformerConfig config;
  config.vocabulary = 19;
  config.hidden = 16;
  config.layers = 3;
  config.heads = 4;
  config.kv_heads = 2;
  config.intermediate = 24;
  config.query_key_norm = true;
  config.dropout = 0.1;
  return config;
}

/// Runs each operation at once, after overwriting the scratch of its handle.
struct Scribbler {
  template <class F>
  void launch(F f) {
    std::memset(scratch.device_pointer(), 0x5A, scratch.size());
    f();
  }
  DeviceBytes scratch;
};

/// The sizes of the scratch that handles have had.
struct ScratchSizes {
  std::set<Bytes> sizes;
};

/// Host operations that ask for different amounts of scratch.
struct ScribblingOps : nn::HostOps<float, Scribbler> {
  using Stream = ScratchSizes;
  ScribblingOps(Stream& stream, DeviceBytes scratch) : HostOps(scribbler), scribbler{scratch} {
    CHECK(reinterpret_cast<std::uintptr_t>(scratch.device_pointer()) % 256 == 0);
    stream.sizes.insert(scratch.size());
  }
  Scribbler scribbler;
  static Bytes linear_scratch_bytes() { return 1000; }
  static Bytes norm_scratch_bytes(std::int64_t vectors, std::int64_t width) {
    return static_cast<Bytes>(vectors * width);
  }
  static Bytes bias_scratch_bytes(std::int64_t rows, std::int64_t width) {
    return static_cast<Bytes>(rows * width * 100);
  }
  static Bytes attention_scratch_bytes(AttentionShape const& s) {
    CHECK(s.dtype == DType::f32);
    return static_cast<Bytes>(s.rows * s.length * s.heads * s.head_dim * s.kv_heads * 20);
  }
  static Bytes embedding_scratch_bytes(std::int64_t tokens, std::int64_t v, std::int64_t width) {
    return static_cast<Bytes>(tokens * 100 + v * 10 + width);
  }
};

/// Runs both passes with both Ops. \returns the sizes of the scratch that the layer provided.
template <template <class> class L>
std::set<Bytes> compare_with_scratch(nn::TransformerConfig const& config) {
  LayerRunner<L<nn::HostOps<float>>> plain(L<nn::HostOps<float>>(config), {2, 5});
  LayerRunner<L<ScribblingOps>> scribbling(L<ScribblingOps>(config), {2, 5});
  auto const run = [](auto& runner) {
    runner.parameter_gradients.zero();
    if (!runner.tensors.side_inputs.empty()) {
      test::write(runner.tensors.side_inputs[0], std::vector<std::int32_t>(10, 3));
    }
    auto content = std::vector<std::vector<std::byte>>{};
    for (bool const saving : {false, true}) {
      static_cast<void>(runner.forward(saving));
      content.push_back(runner.outputs.content());
    }
    runner.backward();
    content.push_back(runner.input_gradients.content());
    content.push_back(runner.parameter_gradients.content());
    return content;
  };
  CHECK(run(plain) == run(scribbling));
  auto const sizes = scribbling.stream.sizes;
  auto const more = scribbling.workspace.device().size() - plain.workspace.device().size();
  Bytes all = 0;
  for (auto const size : sizes) {
    all += align_up(size);
  }
  CHECK((sizes.size() == 1 ? more == all : more < all));  // with two, one lies in other tensors
  return sizes;
}

/// Applies plain gradient descent to the f32 parameters of a runner and clears the gradients.
template <class L>
void descend(LayerRunner<L>& runner, double rate) {
  for (std::size_t i = 0; i < runner.tensors.parameters.size(); ++i) {
    auto values = read(runner.tensors.parameters[i]);
    auto const gradient = read(runner.tensors.parameter_gradients[i]);
    for (std::size_t j = 0; j < values.size(); ++j) {
      values[j] -= rate * gradient[j];
    }
    test::write(runner.tensors.parameters[i], values);
  }
  runner.parameter_gradients.zero();
}

/// Fills the parameters of a runner with the initial values of its table.
template <class L>
void initialize(LayerRunner<L>& runner, std::uint32_t name) {
  auto const specs = runner.layer.parameters();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    bool const ones = specs[i].initial.kind == Initial::Kind::ones;
    test::write_random(runner.tensors.parameters[i],
                       name + static_cast<std::uint32_t>(i),
                       static_cast<double>(specs[i].initial.deviation),
                       ones ? 1.0 : 0.0);
  }
}

TEST_CASE("a transformer is an embedding, its blocks and a head, and their boundaries match") {
  auto const model = nn::transformer<nn::HostOps<float>>(small());
  REQUIRE(model.layer_count() == 5);
  std::vector<std::string> names;
  TensorTable handed;
  for (int i = 0; i < 5; ++i) {
    model.visit(LayerId{i}, [&](auto const& layer) {
      names.push_back(layer.name());
      CHECK(layer.input({2, 3}) == handed);
      handed = layer.boundary({2, 3});
    });
  }
  CHECK(names == std::vector<std::string>{"token embedding",
                                          "transformer block",
                                          "transformer block",
                                          "transformer block",
                                          "language model head"});
  CHECK(handed.empty());
}

TEST_CASE("the first blocks of a transformer may have no window, whatever is frozen") {
  auto config = small();
  config.sliding_window = 4;
  for (std::int64_t const frozen : {0, 1, 2, 3}) {
    for (std::int64_t const full : {0, 1, 2, 3}) {
      config.frozen_blocks = frozen;
      config.full_attention_blocks = full;
      auto const model = nn::transformer<nn::HostOps<float>>(config);
      REQUIRE(model.layer_count() == 5);
      for (int i = 0; i < 3; ++i) {
        model.visit(LayerId{i + 1}, [&](auto const& layer) {
          CHECK(layer.config().sliding_window == (i < full ? 0 : 4));
          CHECK(layer.name() == "transformer block");
          CHECK(layer.parameters()[0].frozen == (i < frozen));
        });
      }
    }
  }
}

TEST_CASE("blocks that are copies of each other are one run of the model") {
  auto config = small();
  auto const runs = [&] {
    auto const model = nn::transformer<nn::HostOps<float>>(config);
    std::string text;
    std::vector<std::size_t> known;
    for (int i = 0; i < 5; ++i) {
      auto const run = model.run_of(LayerId{i});
      auto const at = std::find(known.begin(), known.end(), run);
      text += static_cast<char>('a' + (at - known.begin()));
      if (at == known.end()) {
        known.push_back(run);
      }
    }
    return text;
  };
  CHECK(runs() == "abbbc");
  config.frozen_parameters = {"2.mlp.up_proj.weight"};
  CHECK(runs() == "abcde");
  config.frozen_parameters = {};
  config.lora = {.rank = 2, .targets = {"1.mlp.*"}};
  CHECK(runs() == "abccd");
  config.lora = {};
  config.sliding_window = 4;
  config.full_attention_blocks = 2;
  CHECK(runs() == "abbcd");
}

TEST_CASE("layers reserve scratch for their operations, and keep no data in it") {
  auto const config = small();
  using Sizes = std::set<Bytes>;
  constexpr Bytes attention = 10 * 4 * 4 * 2 * 20;
  CHECK(compare_with_scratch<nn::TokenEmbedding>(config) == Sizes{10 * 100 + 19 * 10 + 16});
  CHECK(compare_with_scratch<nn::TransformerBlock>(config) == Sizes{1000, attention});
  CHECK(compare_with_scratch<nn::LanguageModelHead>(config) == Sizes{1000});
  auto biased = config;
  biased.attention_bias = true;
  CHECK(compare_with_scratch<nn::TransformerBlock>(biased) == Sizes{10 * 16 * 100, attention});
  biased.attention_bias = false;
  biased.output_bias = true;
  CHECK(compare_with_scratch<nn::TransformerBlock>(biased) == Sizes{10 * 16 * 100, attention});
  biased.mlp_bias = true;
  CHECK(compare_with_scratch<nn::TransformerBlock>(biased) == Sizes{10 * 24 * 100, attention});
}

TEST_CASE("a transformer starts at the loss of guessing and learns a sequence by heart") {
  using Ops32 = nn::HostOps<float>;
  auto config = small();
  config.dropout = 0;
  BatchShape const shape{2, 6};
  LayerRunner<nn::TokenEmbedding<Ops32>> embedding(nn::TokenEmbedding<Ops32>(config), shape);
  LayerRunner<nn::TransformerBlock<Ops32>> block(nn::TransformerBlock<Ops32>(config), shape);
  LayerRunner<nn::LanguageModelHead<Ops32>> head(nn::LanguageModelHead<Ops32>(config), shape);
  initialize(embedding, 1);
  initialize(block, 100);
  initialize(head, 200);
  test::write(embedding.tensors.side_inputs[0],
              std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 1, 2, 3, 7, 8, 9});
  test::write(head.tensors.side_inputs[0],
              std::vector<std::int32_t>{2, 3, 4, 5, 6, 7, 2, 3, 7, 8, 9, 10});
  head.call.gradient_scale = 1.0 / 12;
  auto const hand = [](DeviceTensor const& from, DeviceTensor const& to) {
    std::memcpy(to.device_pointer(), from.device_pointer(), from.size_bytes());
  };
  double first = 0;
  double last = 0;
  for (int step = 0; step < 400; ++step) {
    static_cast<void>(embedding.forward(true));
    hand(embedding.tensors.outputs[0], block.tensors.inputs[0]);
    static_cast<void>(block.forward(true));
    hand(block.tensors.outputs[0], head.tensors.inputs[0]);
    static_cast<void>(head.forward(true));
    last = head.backward();
    first = step == 0 ? last : first;
    hand(head.tensors.input_gradients[0], block.tensors.output_gradients[0]);
    block.backward();
    hand(block.tensors.input_gradients[0], embedding.tensors.output_gradients[0]);
    embedding.backward();
    descend(embedding, 0.2);
    descend(block, 0.2);
    descend(head, 0.2);
  }
  CHECK(first == doctest::Approx(std::log(19)).epsilon(0.02));
  // The rows begin with the same three tokens: the fourth token can only be guessed.
  CHECK(last == doctest::Approx(std::log(2) / 6).epsilon(0.2));
}

}  // namespace transformer_test
