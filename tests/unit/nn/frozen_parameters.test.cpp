// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <support/error_of.hpp>
#include <support/nn_harness.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace frozen_parameters_test {

using namespace roundpipe;
using namespace roundpipe::test;

using Ops32 = nn::HostOps<float>;

BatchShape const shape{2, 3};

nn::TransformerConfig small() {
  nn::TransformerConfig config;
  config.vocabulary = 11;
  config.hidden = 12;
  config.layers = 3;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 4;
  config.intermediate = 10;
  return config;
}

/// For many sets of absent parameter gradients, checks that the present gradients keep the bits
/// that they have when all are present, and that the backward writes nothing else. What the layer
/// freezes is absent always.
template <class L>
void check_absent_gradients(L const& layer) {
  LayerRunner<L> runner(layer, shape);
  fill_unwritten(runner);
  INFO(layer.name());
  auto const all = runner.tensors.parameter_gradients;
  auto const input_gradients = runner.tensors.input_gradients;
  auto const run = [&] {
    runner.parameter_gradients.zero();
    runner.backward();
    std::vector<std::vector<double>> sums;
    for (auto const& t : all) {
      sums.push_back(read(t));
    }
    return sums;
  };
  static_cast<void>(runner.forward(true));
  auto const expected = run();
  auto const expected_input = runner.input_gradients.content();

  std::uint32_t const everything = (1U << all.size()) - 1;
  std::vector<std::uint32_t> sets{everything};
  for (std::size_t i = 0; i < all.size(); ++i) {
    sets.push_back(1U << i);
    sets.push_back(everything & ~(1U << i));
    sets.push_back(random_word({4, 4, 4, 4, 4}, i) & everything);
  }
  for (auto const set : sets) {
    CAPTURE(set);
    for (std::size_t i = 0; i < all.size(); ++i) {
      runner.tensors.parameter_gradients[i] = (set >> i & 1U) != 0 ? DeviceTensor{} : all[i];
    }
    auto const check_sums = [&](std::vector<std::vector<double>> const& sums) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK(sums[i] ==
              ((set >> i & 1U) != 0 ? std::vector<double>(expected[i].size()) : expected[i]));
      }
    };
    check_sums(run());
    CHECK(runner.input_gradients.content() == expected_input);
    for (auto& t : runner.tensors.input_gradients) {
      t = DeviceTensor{};
    }
    check_sums(run());  // also when no layer needs the gradient of the input
    runner.tensors.input_gradients = input_gradients;
  }
}

/// Which parameters of the layers are frozen: a word for each layer, a letter for each parameter.
template <class Model>
std::string frozen_of(Model const& model) {
  std::string words;
  for (int i = 0; i < static_cast<int>(model.layer_count()); ++i) {
    model.visit(LayerId{i}, [&](auto const& layer) {
      words += i == 0 ? "" : " ";
      for (auto const& spec : layer.parameters()) {
        words += spec.frozen ? 'f' : 't';
      }
    });
  }
  return words;
}

TEST_CASE("toy layers compute any subset of their gradients") {
  ToyTypes types;
  SUBCASE("f32") {}
  SUBCASE("f16") {
    types.parameter = types.boundary = DType::f16;
  }
  check_absent_gradients(ToyInput{types});
  check_absent_gradients(ToyDense{types});
  check_absent_gradients(ToyDense{types, "", true});
  check_absent_gradients(ToyTwoOut{types});
  check_absent_gradients(ToyCross{types});
  check_absent_gradients(ToyLoss{types});
}

TEST_CASE("transformer layers compute any subset of their gradients") {
  auto config = small();
  SUBCASE("plain") {}
  SUBCASE("with dropout, and norms of queries and keys") {
    config.dropout = 0.1;
    config.query_key_norm = true;
  }
  SUBCASE("with tensors of bf16") {
    config.storage = config.parameter = DType::bf16;
    config.query_key_norm = true;
  }
  SUBCASE("with adapters that drop, and freeze the rest") {
    config.attention_bias = config.query_key_norm = true;
    config.lora = {.rank = 2, .dropout = 0.2, .targets = {"*"}};
  }
  SUBCASE("with biases, norms of queries and keys, and a window") {
    config.attention_bias = config.output_bias = config.mlp_bias = true;
    config.query_key_norm = true;
    config.sliding_window = 2;
  }
  check_absent_gradients(nn::TokenEmbedding<Ops32>(config));
  check_absent_gradients(nn::TransformerBlock<Ops32>(config));
  check_absent_gradients(nn::LanguageModelHead<Ops32>(config));
}

TEST_CASE("a toy model freezes the parameters that its options select") {
  ToyModelOptions options;
  options.dense = 3;
  CHECK(frozen_of(toy_model(options)) == "t tt tt tt tt");
  options.frozen_dense = 2;
  CHECK(frozen_of(toy_model(options)) == "t ff ff tt tt");
  options.frozen_input = true;
  CHECK(frozen_of(toy_model(options)) == "f ff ff tt tt");
  options.tied = true;
  CHECK(frozen_of(toy_model(options)) == "f ff ff tt tf");
  options.empty_parameters = true;
  options.frozen_dense = 7;
  CHECK(frozen_of(toy_model(options)) == "f fff fff fff tf");
  ToyModelOptions mixed;
  mixed.types.frozen = 0b10;  // the second parameter of each layer
  mixed.crosses = 1;
  CHECK(frozen_of(toy_model(mixed)) == "t tf tf t t  tf");
}

TEST_CASE("a transformer freezes the parameters that its configuration selects") {
  auto config = small();
  auto const frozen = [&] { return frozen_of(nn::transformer<Ops32>(config)); };
  CHECK(frozen() == "t ttttttttt ttttttttt ttttttttt tt");
  config.frozen_blocks = 2;
  CHECK(frozen() == "t fffffffff fffffffff ttttttttt tt");
  config.frozen_embedding = true;
  CHECK(frozen() == "f fffffffff fffffffff ttttttttt tt");
  config.tied = true;
  CHECK(frozen() == "f fffffffff fffffffff ttttttttt tf");
  config.frozen_blocks = 3;
  CHECK(frozen() == "f fffffffff fffffffff fffffffff tf");
  for (std::int64_t const full : {0, 1, 2, 3}) {
    config.full_attention_blocks = full;
    config.frozen_blocks = 2;
    CHECK(frozen() == "f fffffffff fffffffff ttttttttt tf");
    config.frozen_blocks = 0;
    CHECK(frozen() == "f ttttttttt ttttttttt ttttttttt tf");
  }
  config.attention_bias = true;
  config.frozen_blocks = 1;
  CHECK(frozen() == "f ffffffffffff tttttttttttt tttttttttttt tf");
}

TEST_CASE("a transformer freezes the parameters that patterns name") {
  auto config = small();
  auto const frozen = [&] { return frozen_of(nn::transformer<Ops32>(config)); };
  config.frozen_parameters = {"1.self_attn.q_proj.weight"};
  CHECK(frozen() == "t tfttttttt ttttttttt ttttttttt tt");
  config.frozen_parameters = {"q_proj.weight", "[23].mlp.*", "?.norm.weight"};
  CHECK(frozen() == "t tfttttttt tfttttfff tfttttfff ft");
  config.frozen_parameters = {"*_layernorm.weight"};
  CHECK(frozen() == "t fttttfttt fttttfttt fttttfttt tt");
  config.frozen_parameters = {"embed_tokens.*"};
  CHECK(frozen() == "f ttttttttt ttttttttt ttttttttt tt");
  config.tied = true;
  CHECK(frozen() == "f ttttttttt ttttttttt ttttttttt tf");
}

TEST_CASE("adapters freeze all other parameters") {
  auto config = small();
  auto const frozen = [&] { return frozen_of(nn::transformer<Ops32>(config)); };
  config.lora = {.rank = 2, .targets = {"v_proj", "2.*.o_proj"}};
  CHECK(frozen() == "f ffffffffftt ffffffffftttt ffffffffftt ff");
  config.lora.targets = {"*"};
  CHECK(frozen() == "f fffffffff" + std::string(14, 't') + " fffffffff" + std::string(14, 't') +
                        " fffffffff" + std::string(14, 't') + " fftt");
  config.tied = true;  // no adapter of the head
  config.lora.targets = {"2.mlp.up_proj", "lm_head", "4.lm_head"};
  CHECK_THROWS_AS(static_cast<void>(frozen()), Error);
  config.lora.targets = {"2.mlp.up_proj", "[!24].mlp.*down*"};
  config.frozen_parameters = {"lora_A.weight"};
  CHECK(frozen() ==
        "f ffffffffff"
        "t ffffffffff"
        "t ffffffffff"
        "t ff");
}

TEST_CASE("a pattern that matches nothing is refused") {
  auto config = small();
  auto const message = [&] {
    return error_of([&] { static_cast<void>(nn::transformer<Ops32>(config)); }).message();
  };
  config.frozen_parameters = {"embed_tokens.weight", "4.self_attn.q_proj.weight"};
  CHECK(message() ==
        "TransformerConfig::frozen_parameters: '4.self_attn.q_proj.weight' matches nothing; there "
        "are 0.embed_tokens.weight to 4.lm_head.weight");
  config.frozen_parameters = {};
  config.lora = {.rank = 2, .targets = {"q_proj", "embed_tokens"}};
  CHECK(message() ==
        "TransformerConfig::lora.targets: 'embed_tokens' matches nothing; there are "
        "1.self_attn.q_proj to 4.lm_head; an embedding is no linear map");
  config.tied = true;
  config.lora.targets = {"lm_head"};
  CHECK(message() ==
        "TransformerConfig::lora.targets: 'lm_head' matches nothing; there are 1.self_attn.q_proj "
        "to 3.mlp.down_proj; the head is tied to the embedding's table");
}

TEST_CASE("freezing changes nothing in a layer but the frozen flags of its table") {
  nn::TransformerBlock<Ops32> const trained(small());
  nn::TransformerBlock<Ops32> const frozen(small(), true);
  auto const before = trained.parameters();
  auto const after = frozen.parameters();
  REQUIRE(before.size() == after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(before[i].tensor == after[i].tensor);
    CHECK(before[i].initial.kind == after[i].initial.kind);
    CHECK(before[i].initial.deviation == after[i].initial.deviation);
    CHECK(before[i].decay == after[i].decay);
    CHECK(before[i].sharing_key == after[i].sharing_key);
    CHECK_FALSE(before[i].frozen);
    CHECK(after[i].frozen);
  }
  CHECK(trained.footprint(shape).saved_bytes == frozen.footprint(shape).saved_bytes);
  CHECK(trained.footprint(shape).workspace_bytes == frozen.footprint(shape).workspace_bytes);
}

}  // namespace frozen_parameters_test
