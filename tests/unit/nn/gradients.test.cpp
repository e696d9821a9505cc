// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/language_model_head.hpp>
#include <roundpipe/nn/token_embedding.hpp>
#include <roundpipe/nn/transformer_block.hpp>
#include <support/nn_harness.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace gradients_test {

namespace {

using namespace roundpipe;
using test::check_gradients;
using test::LayerRunner;

using Ops64 = nn::HostOps<double>;
using Embedding = nn::TokenEmbedding<Ops64>;
using Block = nn::TransformerBlock<Ops64>;
using Head = nn::LanguageModelHead<Ops64>;

nn::TransformerConfig small() {
  nn::TransformerConfig config;
  config.vocabulary = 11;
  config.hidden = 12;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 4;
  config.intermediate = 10;
  config.storage = DType::f64;
  config.parameter = DType::f64;
  return config;
}

void check_head(nn::TransformerConfig const& config, std::vector<std::int32_t> const& labels) {
  LayerRunner<Head> runner(Head(config), {2, 3});
  runner.call.gradient_scale = 0.7;
  test::write(runner.tensors.side_inputs[0], labels);
  check_gradients(runner);
}

}  // namespace

TEST_CASE("the gradients of a block match finite differences") {
  auto config = small();
  SUBCASE("with grouped queries") {}
  SUBCASE("with a key head for each query head") {
    config.kv_heads = 4;
  }
  SUBCASE("with one key head") {
    config.kv_heads = 1;
  }
  SUBCASE("with norms of queries and keys") {
    config.query_key_norm = true;
  }
  SUBCASE("with dropout") {
    config.dropout = 0.3;
  }
  SUBCASE("with biases of queries, keys and values") {
    config.attention_bias = true;
  }
  SUBCASE("with all biases") {
    config.attention_bias = config.output_bias = config.mlp_bias = true;
  }
  SUBCASE("with a sliding window") {
    config.sliding_window = 2;
  }
  SUBCASE("with amplified, stretched rotations") {
    config.rope_scaling = {
        .kind = nn::RopeScaling::Kind::yarn, .factor = 4, .original_max_position_embeddings = 8};
  }
  SUBCASE("with everything at once") {
    config.query_key_norm = true;
    config.dropout = 0.2;
    config.rope_theta = 100;
    config.attention_bias = config.output_bias = config.mlp_bias = true;
    config.sliding_window = 3;
    config.rope_scaling = {
        .kind = nn::RopeScaling::Kind::yarn, .factor = 4, .original_max_position_embeddings = 8};
  }
  LayerRunner<Block> runner(Block(config), {2, 5});
  check_gradients(runner);
}

TEST_CASE("the gradients of a block's adapters match finite differences") {
  auto config = small();
  config.lora = {.rank = 3, .alpha = 2};
  SUBCASE("of some maps") {
    config.lora.targets = {"k_proj", "1.mlp.down_proj"};
  }
  SUBCASE("with everything at once") {
    config.lora.dropout = 0.2;
    config.lora.use_rslora = true;
    config.query_key_norm = true;
    config.dropout = 0.2;
    config.attention_bias = config.output_bias = config.mlp_bias = true;
    config.sliding_window = 3;
  }
  LayerRunner<Block> runner(Block(config), {2, 5});
  check_gradients(runner);
}

TEST_CASE("the gradients of a block match finite differences beyond one block of queries") {
  auto config = small();
  config.hidden = 4;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 2;
  config.intermediate = 3;
  SUBCASE("without a window") {}
  SUBCASE("with a window") {
    config.sliding_window = 20;
  }
  LayerRunner<Block> runner(Block(config), {1, nn::detail::query_block + 7});
  check_gradients(runner);
}

TEST_CASE("the gradients of a block match finite differences at a single position") {
  // With attention to itself alone, queries and keys have no influence: the test compares the
  // others.
  LayerRunner<Block> runner(Block(small()), {3, 1});
  static_cast<void>(runner.objective());
  runner.backward();
  auto const gradient = test::read(runner.tensors.input_gradients[0]);
  auto const quotients = test::difference_quotients(runner, runner.tensors.inputs[0]);
  CHECK(test::relative_difference(gradient, quotients) <= 1e-6);
}

TEST_CASE("the gradients of an embedding match finite differences") {
  auto config = small();
  SUBCASE("without dropout") {}
  SUBCASE("with dropout") {
    config.dropout = 0.4;
  }
  LayerRunner<Embedding> runner(Embedding(config), {2, 4});
  test::write(runner.tensors.side_inputs[0], std::vector<std::int32_t>{3, 1, 3, 0, 10, 3, 7, 10});
  check_gradients(runner);
}

TEST_CASE("the gradients of a head match finite differences") {
  auto config = small();
  SUBCASE("with all labels") {
    check_head(config, {1, 0, 10, 3, 3, 5});
  }
  SUBCASE("with padding") {
    check_head(config, {1, -100, 10, -100, -100, 5});
  }
  SUBCASE("with another padding label") {
    config.padding_label = 0;
    check_head(config, {1, 0, 10, 0, 3, 5});
  }
  SUBCASE("with chunks that divide the positions") {
    config.loss_chunk = 2;
    check_head(config, {1, 0, 10, -100, 3, 5});
  }
  SUBCASE("with a smaller last chunk") {
    config.loss_chunk = 4;
    check_head(config, {1, 0, 10, -100, 3, 5});
  }
  SUBCASE("with chunks of one position") {
    config.loss_chunk = 1;
    check_head(config, {-100, 0, 10, 4, 3, -100});
  }
  SUBCASE("with an adapter") {
    config.lora = {.rank = 2, .alpha = 3, .targets = {"lm_head"}};
    check_head(config, {1, 0, 10, -100, 3, 5});
  }
  SUBCASE("with an adapter that drops, in chunks") {
    config.lora = {.rank = 2, .dropout = 0.4, .targets = {"3.lm_head"}};
    config.loss_chunk = 4;
    check_head(config, {1, 0, 10, -100, 3, 5});
  }
  SUBCASE("with a tied table") {
    config.tied = true;
    check_head(config, {1, 0, 10, 3, 3, 5});
  }
}

}  // namespace gradients_test
