// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/transformer_config.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>

namespace transformer_config_test {

namespace {

using namespace roundpipe;

nn::TransformerConfig good() {
  nn::TransformerConfig config;
  config.vocabulary = 100;
  config.hidden = 96;
  config.heads = 6;
  return config;
}

/// Checks that the changed configuration is refused with a message that contains \p words.
void check_refused(std::function<void(nn::TransformerConfig&)> const& change,
                   std::string const& words) {
  auto config = good();
  change(config);
  auto const error = test::error_of([&] { static_cast<void>(config.resolved()); });
  INFO(error.message());
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message().find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("a configuration fills in its defaults") {
  auto const config = good().resolved();
  CHECK(config.kv_heads == 6);
  CHECK(config.head_dim == 16);
  CHECK(config.intermediate == 256);  // 8/3 of 96
  CHECK(config.query_width() == 96);
  CHECK(config.kv_width() == 96);
  auto other = good();
  other.kv_heads = 2;
  other.head_dim = 128;
  other.heads = 4;
  other.hidden = 1000;
  CHECK(other.resolved().intermediate == 2688);
  CHECK(other.resolved().query_width() == 512);
  CHECK(other.resolved().kv_width() == 256);
  auto const again = other.resolved().resolved();
  CHECK(again.intermediate == 2688);
}

TEST_CASE("an invalid configuration is refused, and the error names the field") {
  check_refused([](auto& c) { c.vocabulary = 0; }, "vocabulary is 0");
  check_refused([](auto& c) { c.hidden = -8; }, "hidden is -8");
  check_refused([](auto& c) { c.layers = 0; }, "layers is 0");
  check_refused([](auto& c) { c.heads = 0; }, "heads is 0");
  check_refused([](auto& c) { c.kv_heads = -1; }, "kv_heads is -1");
  check_refused([](auto& c) { c.head_dim = -2; }, "head_dim is -2");
  check_refused([](auto& c) { c.intermediate = -1; }, "intermediate is -1");
  check_refused([](auto& c) { c.loss_chunk = 0; }, "loss_chunk is 0");
  check_refused([](auto& c) { c.vocabulary = std::int64_t{1} << 31; }, "fit 32 bits");
  check_refused([](auto& c) { c.heads = 5; }, "heads = 5 does not divide hidden = 96");
  check_refused([](auto& c) { c.kv_heads = 4; }, "kv_heads = 4 does not divide heads = 6");
  check_refused([](auto& c) { c.heads = 32; }, "head_dim is 3");
  check_refused([](auto& c) { c.head_dim = 7; }, "must be even");
  check_refused([](auto& c) { c.dropout = 1; }, "dropout");
  check_refused([](auto& c) { c.dropout = -0.1; }, "dropout");
  check_refused([](auto& c) { c.dropout = std::numeric_limits<double>::quiet_NaN(); }, "dropout");
  check_refused([](auto& c) { c.rope_theta = 0; }, "rope_theta");
  check_refused([](auto& c) { c.rope_theta = std::numeric_limits<double>::infinity(); },
                "rope_theta");
  check_refused([](auto& c) { c.norm_epsilon = 0; }, "norm_epsilon");
  check_refused([](auto& c) { c.initial_deviation = -1; }, "initial_deviation");
  check_refused([](auto& c) { c.storage = DType::i32; }, "storage");
  check_refused([](auto& c) { c.parameter = DType::u8; }, "parameter");
  check_refused([](auto& c) { c.frozen_blocks = -1; }, "frozen_blocks is -1");
  check_refused([](auto& c) { c.frozen_blocks = 2; }, "from 0 to layers = 1");
  check_refused([](auto& c) { c.full_attention_blocks = 2; }, "full_attention_blocks is 2");
  check_refused([](auto& c) { c.sliding_window = -1; }, "sliding_window is -1");
  check_refused([](auto& c) { c.sliding_window = std::int64_t{1} << 31; }, "fit 32 bits");
  check_refused([](auto& c) { c.lora.rank = -1; }, "LoraConfig::rank is -1");
  check_refused([](auto& c) { c.lora.rank = std::int64_t{1} << 31; }, "fit 32 bits");
  check_refused([](auto& c) { c.lora.alpha = -1; }, "LoraConfig::alpha");
  check_refused([](auto& c) { c.lora.dropout = 1; }, "LoraConfig::dropout");
  check_refused([](auto& c) { c.lora = {.rank = 2, .targets = {}}; }, "LoraConfig::targets");
  using Kind = nn::RopeScaling::Kind;
  check_refused([](auto& c) { c.rope_scaling = {.kind = Kind::linear, .factor = 0.5}; },
                "RopeScaling::factor is 0.5");
  check_refused(
      [](auto& c) {
        c.rope_theta = 1;
        c.rope_scaling = {
            .kind = Kind::yarn, .factor = 2, .original_max_position_embeddings = 2048};
      },
      "rope_theta must be greater than 1 for yarn");
}

TEST_CASE("adapters are scaled by alpha over the rank, or over its root") {
  CHECK(nn::LoraConfig{.rank = 16}.resolved().scale() == 1);
  CHECK(nn::LoraConfig{.rank = 16, .alpha = 8}.resolved().scale() == 0.5);
  CHECK(nn::LoraConfig{.rank = 16, .alpha = 8, .use_rslora = true}.resolved().scale() == 2);
}

TEST_CASE("heads that do not divide hidden are allowed when head_dim is given") {
  auto config = good();
  config.heads = 5;
  config.head_dim = 16;
  CHECK(config.resolved().query_width() == 80);
}

}  // namespace transformer_config_test
