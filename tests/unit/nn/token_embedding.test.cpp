// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/token_embedding.hpp>

#include <roundpipe/nn/host_ops.hpp>
#include <support/error_of.hpp>
#include <support/nn_harness.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace token_embedding_test {

namespace {

using namespace roundpipe;
using test::LayerRunner;
using test::read;
using Tokens = std::vector<std::int32_t>;

using Embedding = nn::TokenEmbedding<nn::HostOps<float>>;

nn::TransformerConfig small(DType type) {
  nn::TransformerConfig config;
  config.vocabulary = 7;
  config.hidden = 8;
  config.heads = 2;
  config.storage = type;
  config.parameter = type;
  return config;
}

}  // namespace

TEST_CASE("an embedding copies the row of each token") {
  auto config = small(DType::f32);
  SUBCASE("of f32") {}
  SUBCASE("of bf16") {
    config.storage = config.parameter = DType::bf16;
  }
  SUBCASE("of f64") {
    config.storage = config.parameter = DType::f64;
  }
  SUBCASE("of f32, rounded to bf16") {
    config.storage = DType::bf16;
  }
  LayerRunner<Embedding> runner(Embedding(config), {2, 3});
  Tokens const tokens{6, 0, 3, 3, 6, 1};
  test::write(runner.tensors.side_inputs[0], tokens);
  static_cast<void>(runner.forward(true));
  auto const table = read(runner.tensors.parameters[0]);
  auto const out = read(runner.tensors.outputs[0]);
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto const value = table[static_cast<std::size_t>(tokens[i / 8]) * 8 + i % 8];
    CHECK(out[i] == (config.storage == DType::bf16
                         ? static_cast<double>(BFloat16(static_cast<float>(value)))
                         : value));
  }
}

TEST_CASE("an embedding adds the gradients of repeated tokens in order") {
  LayerRunner<Embedding> runner(Embedding(small(DType::f32)), {2, 4});
  test::write(runner.tensors.side_inputs[0], Tokens{5, 2, 5, 5, 2, 5, 0, 5});
  static_cast<void>(runner.forward(true));
  test::write_random(runner.tensors.parameter_gradients[0], 3, 1.0, 0.0);
  auto const before = runner.tensors.parameter_gradients[0].as<float>().device_pointer();
  std::vector<float> expected(before, before + 56);
  auto const gradient = runner.tensors.output_gradients[0].as<float>().device_pointer();
  for (std::size_t i = 0; i < 8; ++i) {
    auto const token = static_cast<std::size_t>(
        runner.tensors.side_inputs[0].as<std::int32_t>().device_pointer()[i]);
    for (std::size_t j = 0; j < 8; ++j) {
      expected[token * 8 + j] += gradient[i * 8 + j];
    }
  }
  runner.backward();
  auto const after = runner.tensors.parameter_gradients[0].as<float>().device_pointer();
  CHECK(std::vector<float>(after, after + 56) == expected);
}

TEST_CASE("an embedding accumulates bf16 gradients in f32") {
  LayerRunner<Embedding> runner(Embedding(small(DType::bf16)), {1, 512});
  test::write(runner.tensors.side_inputs[0], Tokens(512, 4));
  test::write(runner.tensors.output_gradients[0], std::vector<double>(512 * 8, 1.0));
  static_cast<void>(runner.forward(true));
  runner.backward();
  auto const sum = read(runner.tensors.parameter_gradients[0]);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    CHECK(sum[i] == (i / 8 == 4 ? 512.0 : 0.0));  // bf16 would stop at 256
  }
}

TEST_CASE("the backward of an embedding repeats the dropout, and evaluation has none") {
  auto config = small(DType::f32);
  config.dropout = 0.5;
  LayerRunner<Embedding> runner(Embedding(config), {1, 6});
  test::write(runner.tensors.side_inputs[0], Tokens{0, 1, 2, 3, 4, 5});
  static_cast<void>(runner.forward(true));
  auto const table = read(runner.tensors.parameters[0]);
  auto const out = read(runner.tensors.outputs[0]);
  runner.backward();
  auto const gradient = read(runner.tensors.output_gradients[0]);
  auto const sum = read(runner.tensors.parameter_gradients[0]);
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    bool const kept = uniform(random_word(runner.call.random, i)) >= 0.5F;
    dropped += kept ? 0 : 1;
    CHECK(out[i] == (kept ? 2 * table[i] : 0.0));
    CHECK(sum[i] == (kept ? 2 * gradient[i] : 0.0));
  }
  CHECK(dropped > 10);
  CHECK(dropped < 38);
  runner.call.evaluating = true;
  static_cast<void>(runner.forward(false));
  CHECK(read(runner.tensors.outputs[0]) == std::vector<double>(table.begin(), table.begin() + 48));
}

TEST_CASE("an embedding whose output nobody reads does nothing") {
  LayerRunner<Embedding> runner(Embedding(small(DType::f32)), {1, 6});
  test::write(runner.tensors.side_inputs[0], Tokens{0, 1, 2, 3, 4, 5});
  runner.call.wants_output = false;
  static_cast<void>(runner.forward(true));
  auto const poisoned = runner.outputs.content();
  runner.outputs.poison();
  CHECK(runner.outputs.content() == poisoned);
}

TEST_CASE("a token outside the vocabulary stops the stream") {
  for (std::int32_t const token : {7, -1, 1 << 30}) {
    LayerRunner<Embedding> runner(Embedding(small(DType::f32)), {1, 2});
    test::write(runner.tensors.side_inputs[0], Tokens{0, token});
    auto const error = test::error_of([&] { runner.forward(true); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(error.message().find("token " + std::to_string(token)) != std::string::npos);
    CHECK(test::error_of([&] { runner.backward(); }).code() == Errc::invalid_argument);
  }
}

TEST_CASE("an embedding accepts smaller extents than its memory was planned for") {
  auto config = small(DType::f32);
  config.dropout = 0.2;
  LayerRunner<Embedding> exact(Embedding(config), {2, 3});
  LayerRunner<Embedding> roomy(Embedding(config), {2, 3}, {4, 5});
  for (auto* runner : {&exact, &roomy}) {
    test::write(runner->tensors.side_inputs[0], Tokens{1, 2, 3, 4, 5, 6});
    static_cast<void>(runner->forward(true));
  }
  CHECK(read(exact.tensors.outputs[0]) == read(roomy.tensors.outputs[0]));
  exact.backward();
  roomy.backward();
  CHECK(exact.parameter_gradients.content() == roomy.parameter_gradients.content());
}

TEST_CASE("an embedding describes itself") {
  auto config = small(DType::bf16);
  SUBCASE("with its own table") {}
  SUBCASE("with a table that the head shares") {
    config.tied = true;
  }
  Embedding const embedding(config);
  CHECK(embedding.name() == "token embedding");
  auto const table = embedding.parameters();
  REQUIRE(table.size() == 1);
  CHECK(table[0].tensor == TensorSpec{"embed_tokens.weight", {7, 8}, DType::bf16});
  CHECK(table[0].decay == DecayGroup::exempt);
  CHECK(table[0].sharing_key == (config.tied ? "token_embedding" : ""));
  CHECK(embedding.input({2, 3}).empty());
  CHECK(embedding.side_inputs({2, 3})[0] == TensorSpec{"tokens", {2, 3}, DType::i32});
  CHECK(embedding.boundary({2, 3})[0] == TensorSpec{"hidden", {2, 3, 8}, DType::bf16});
  CHECK(embedding.footprint({2, 3}).saved_bytes == 0);
  CHECK(embedding.footprint({2, 3}).workspace_bytes == 0);
  CHECK(embedding.work({2, 3}).backward_flops == 48);
}

}  // namespace token_embedding_test
