// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/transformer_block.hpp>

#include <roundpipe/core/random.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <support/nn_harness.hpp>
#include <support/nn_reference.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace transformer_block_test {

namespace {

using namespace roundpipe;
using test::LayerRunner;
using test::read;
using test::relative_difference;

using Block64 = nn::TransformerBlock<nn::HostOps<double>>;
using Block32 = nn::TransformerBlock<nn::HostOps<float>>;

nn::TransformerConfig small(DType storage, DType parameter) {
  nn::TransformerConfig config;
  config.vocabulary = 11;
  config.hidden = 24;
  config.layers = 8;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.intermediate = 40;
  config.rope_theta = 500;
  config.storage = storage;
  config.parameter = parameter;
  return config;
}

/// The reference block with the parameters of the runner.
template <class L>
test::ReferenceBlock reference_of(LayerRunner<L> const& runner) {
  auto const& c = runner.layer.config();
  auto const size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  test::ReferenceBlock reference{size(runner.call.shape.rows),
                                 size(runner.call.shape.length),
                                 size(c.hidden),
                                 size(c.heads),
                                 size(c.kv_heads),
                                 size(c.head_dim),
                                 size(c.intermediate),
                                 c.rope_theta,
                                 c.norm_epsilon,
                                 c.query_key_norm,
                                 size(c.sliding_window),
                                 {}};
  auto const specs = runner.layer.parameters();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    reference.weights[specs[i].tensor.name] = read(runner.tensors.parameters[i]);
  }
  return reference;
}

/// All results of a forward and a backward.
template <class L>
std::vector<std::vector<std::byte>> bits_of_passes(LayerRunner<L>& runner) {
  runner.parameter_gradients.zero();
  static_cast<void>(runner.forward(true));
  auto out = runner.outputs.content();
  runner.backward();
  return {out, runner.input_gradients.content(), runner.parameter_gradients.content()};
}

}  // namespace

TEST_CASE("a block matches plain loops") {
  auto config = small(DType::f64, DType::f64);
  SUBCASE("with grouped queries") {}
  SUBCASE("with as many key heads") {
    config.kv_heads = 4;
  }
  SUBCASE("with norms of queries and keys") {
    config.query_key_norm = true;
  }
  SUBCASE("with heads wider than hidden over heads") {
    config.head_dim = 10;
  }
  SUBCASE("with biases of queries, keys and values") {
    config.attention_bias = true;
  }
  SUBCASE("with a bias of the attention's output") {
    config.output_bias = true;
  }
  SUBCASE("with biases of the MLP") {
    config.mlp_bias = true;
  }
  SUBCASE("with all biases, and norms of queries and keys") {
    config.attention_bias = config.output_bias = config.mlp_bias = true;
    config.query_key_norm = true;
  }
  SUBCASE("with a sliding window") {
    config.sliding_window = 3;
  }
  SUBCASE("with a window of the position itself") {
    config.sliding_window = 1;
  }
  SUBCASE("with a window that holds all positions") {
    config.sliding_window = 7;
  }
  LayerRunner<Block64> runner(Block64(config), {3, 7});
  auto const expected = reference_of(runner)(read(runner.tensors.inputs[0]));
  static_cast<void>(runner.forward(true));
  CHECK(relative_difference(read(runner.tensors.outputs[0]), expected) < 1e-13);
  static_cast<void>(runner.forward(false));
  CHECK(relative_difference(read(runner.tensors.outputs[0]), expected) < 1e-13);
}

TEST_CASE("a block with stretched frequencies matches plain loops") {
  auto config = small(DType::f64, DType::f64);
  config.query_key_norm = true;
  auto const check = [&](auto const& stretch, double amplitude) {
    LayerRunner<Block64> runner(Block64(config), {2, 9});
    auto reference = reference_of(runner);
    auto const plain = reference(read(runner.tensors.inputs[0]));
    reference.stretch = stretch;
    reference.amplitude = amplitude;
    auto const expected = reference(read(runner.tensors.inputs[0]));
    CHECK(relative_difference(plain, expected) > 1e-4);
    static_cast<void>(runner.forward(true));
    CHECK(relative_difference(read(runner.tensors.outputs[0]), expected) < 1e-13);
  };
  using Kind = nn::RopeScaling::Kind;
  SUBCASE("by a factor") {
    config.rope_scaling = {.kind = Kind::linear, .factor = 4};
    check([](std::size_t, double) { return 0.25; }, 1);
  }
  SUBCASE("by their turns in the original context") {
    // The pairs turn 10/2pi = 1.6, 0.34, 0.07 and 0.02 times in 10 positions.
    config.rope_scaling = {.kind = Kind::llama3,
                           .factor = 8,
                           .original_max_position_embeddings = 10,
                           .low_freq_factor = 0.1,
                           .high_freq_factor = 1};
    check(
        [](std::size_t, double frequency) {
          auto const turns = 10 * frequency / (2 * 3.14159265358979323846);
          auto const smooth = (turns - 0.1) / 0.9;
          return turns > 1 ? 1 : turns < 0.1 ? 1.0 / 8 : smooth + (1 - smooth) / 8;
        },
        1);
  }
  SUBCASE("from a pair to another, and amplified") {
    config.rope_scaling = {.kind = Kind::yarn,
                           .factor = 4,
                           .original_max_position_embeddings = 10,
                           .beta_fast = 1,
                           .beta_slow = 0.05};
    // 8 ln(10 / 2pi) / (2 ln 500) = 0.3 and 8 ln(200 / 2pi) / (2 ln 500) = 2.2
    check(
        [](std::size_t i, double) {
          return i == 0 ? 1 : i == 1 ? (2 + 1.0 / 4) / 3 : i == 2 ? (1 + 2.0 / 4) / 3 : 0.25;
        },
        0.1 * std::log(4.0) + 1);
  }
}

TEST_CASE("the attention of a block matches plain loops across its blocks of queries") {
  auto config = small(DType::f64, DType::f64);
  SUBCASE("without a window") {}
  SUBCASE("with a window that begins in the block before") {
    config.sliding_window = 40;
  }
  SUBCASE("with a window of more than a block") {
    config.sliding_window = nn::detail::query_block + 2;
  }
  LayerRunner<Block64> runner(Block64(config), {1, 2 * nn::detail::query_block + 3});
  auto const expected = reference_of(runner)(read(runner.tensors.inputs[0]));
  static_cast<void>(runner.forward(true));
  CHECK(relative_difference(read(runner.tensors.outputs[0]), expected) < 1e-13);
}

TEST_CASE(
    "the dropout of a block draws each element from the call's key, and evaluation has none") {
  auto config = small(DType::f64, DType::f64);
  config.dropout = 0.25;
  LayerRunner<Block64> runner(Block64(config), {2, 5});
  auto reference = reference_of(runner);
  auto const plain = reference(read(runner.tensors.inputs[0]));
  reference.mask = [&](int branch, std::size_t i) {
    // The index of a projection in the parameter table numbers its branch.
    auto const key = runner.call.random.with_stream(branch == 0 ? 4 : 8);
    return uniform(random_word(key, i)) < 0.25F ? 0.0 : 1 / 0.75;
  };
  auto const dropped = reference(read(runner.tensors.inputs[0]));
  CHECK(relative_difference(dropped, plain) > 0.01);
  static_cast<void>(runner.forward(true));
  CHECK(relative_difference(read(runner.tensors.outputs[0]), dropped) < 1e-13);
  runner.call.random.micro_batch += 1;
  static_cast<void>(runner.forward(true));
  CHECK(relative_difference(read(runner.tensors.outputs[0]), dropped) > 0.01);
  runner.call.evaluating = true;
  static_cast<void>(runner.forward(false));
  CHECK(relative_difference(read(runner.tensors.outputs[0]), plain) < 1e-13);
}

TEST_CASE("no position of a block sees a later position or another row") {
  auto const config = small(DType::f64, DType::f64);
  LayerRunner<Block64> runner(Block64(config), {2, 6});
  static_cast<void>(runner.forward(true));
  auto const before = read(runner.tensors.outputs[0]);
  std::size_t const changed = (6 + 3) * 24;  // position 3 of row 1
  test::write_one(runner.tensors.inputs[0], changed, 9.0);
  static_cast<void>(runner.forward(true));
  auto const after = read(runner.tensors.outputs[0]);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (i < changed) {
      CHECK(after[i] == before[i]);
    }
  }
  CHECK(after.back() != before.back());
}

TEST_CASE("no position of a block with a window sees a position before its window") {
  auto config = small(DType::f64, DType::f64);
  config.sliding_window = 3;
  LayerRunner<Block64> runner(Block64(config), {1, 6});
  static_cast<void>(runner.forward(true));
  auto const before = read(runner.tensors.outputs[0]);
  std::size_t const changed = 1 * 24;  // position 1
  test::write_one(runner.tensors.inputs[0], changed, 9.0);
  static_cast<void>(runner.forward(true));
  auto const after = read(runner.tensors.outputs[0]);
  for (std::size_t t = 0; t < 6; ++t) {
    CAPTURE(t);
    CHECK((after[t * 24] != before[t * 24]) == (t >= 1 && t <= 3));
  }
}

TEST_CASE("a window of the whole row has the bits of no window") {
  auto config = small(DType::f32, DType::f32);
  LayerRunner<Block32> runner(Block32(config), {2, 70});
  auto const plain = bits_of_passes(runner);
  for (std::int64_t const window : {70, 71, 100000}) {
    config.sliding_window = window;
    LayerRunner<Block32> windowed(Block32(config), {2, 70});
    CHECK(bits_of_passes(windowed) == plain);
  }
  config.sliding_window = 69;
  LayerRunner<Block32> shorter(Block32(config), {2, 70});
  CHECK(bits_of_passes(shorter) != plain);
}

TEST_CASE("a block in float agrees with a block in double") {
  auto config = small(DType::f32, DType::f32);
  SUBCASE("plain") {}
  SUBCASE("with biases and a window") {
    config.attention_bias = config.output_bias = config.mlp_bias = true;
    config.sliding_window = 4;
  }
  SUBCASE("with norms of queries and keys") {
    config.query_key_norm = true;
  }
  SUBCASE("with dropout") {
    config.dropout = 0.1;
  }
  // The same f32 tensors, computed in float in place and in double.
  LayerRunner<Block32> narrow(Block32(config), {2, 9});
  LayerRunner<Block64> wide(Block64(config), {2, 9});
  static_cast<void>(narrow.forward(true));
  static_cast<void>(wide.forward(true));
  CHECK(relative_difference(read(narrow.tensors.outputs[0]), read(wide.tensors.outputs[0])) < 1e-6);
  narrow.backward();
  wide.backward();
  CHECK(relative_difference(read(narrow.tensors.input_gradients[0]),
                            read(wide.tensors.input_gradients[0])) < 2e-6);
  for (std::size_t i = 0; i < narrow.tensors.parameters.size(); ++i) {
    CHECK(relative_difference(read(narrow.tensors.parameter_gradients[i]),
                              read(wide.tensors.parameter_gradients[i])) < 4e-6);
  }
}

TEST_CASE("a block stores bf16 and is as accurate as bf16 allows") {
  auto config = small(DType::bf16, DType::bf16);
  SUBCASE("plain") {}
  SUBCASE("with biases and a window") {
    config.attention_bias = config.output_bias = config.mlp_bias = true;
    config.sliding_window = 4;
  }
  SUBCASE("with norms of queries and keys") {
    config.query_key_norm = true;
  }
  SUBCASE("with f32 parameters") {
    config.parameter = DType::f32;
  }
  LayerRunner<Block32> narrow(Block32(config), {2, 9});
  config.storage = config.parameter = DType::f64;
  LayerRunner<Block64> wide(Block64(config), {2, 9});
  CHECK(narrow.tensors.outputs[0].dtype() == DType::bf16);
  CHECK(narrow.tensors.parameter_gradients[0].dtype() == DType::f32);
  for (std::size_t i = 0; i < narrow.tensors.parameters.size(); ++i) {
    test::write(wide.tensors.parameters[i], read(narrow.tensors.parameters[i]));
  }
  test::write(wide.tensors.inputs[0], read(narrow.tensors.inputs[0]));
  test::write(wide.tensors.output_gradients[0], read(narrow.tensors.output_gradients[0]));
  static_cast<void>(narrow.forward(true));
  static_cast<void>(wide.forward(true));
  CHECK(relative_difference(read(narrow.tensors.outputs[0]), read(wide.tensors.outputs[0])) < 0.01);
  narrow.backward();
  wide.backward();
  CHECK(relative_difference(read(narrow.tensors.input_gradients[0]),
                            read(wide.tensors.input_gradients[0])) < 0.02);
  for (std::size_t i = 0; i < narrow.tensors.parameters.size(); ++i) {
    INFO(narrow.layer.parameters()[i].tensor.name);
    CHECK(relative_difference(read(narrow.tensors.parameter_gradients[i]),
                              read(wide.tensors.parameter_gradients[i])) < 0.03);
  }
}

TEST_CASE("a block repeats its bits, on another thread and without saving") {
  auto config = small(DType::f32, DType::f32);
  config.dropout = 0.1;
  config.query_key_norm = true;
  SUBCASE("of f32") {}
  SUBCASE("of bf16") {
    config.storage = config.parameter = DType::bf16;
  }
  SUBCASE("with biases, a window and stretched frequencies") {
    config.attention_bias = config.output_bias = config.mlp_bias = true;
    config.sliding_window = 5;
    config.rope_scaling = {.kind = nn::RopeScaling::Kind::linear, .factor = 2};
  }
  LayerRunner<Block32> runner(Block32(config), {3, 13});
  auto const first = bits_of_passes(runner);
  CHECK(bits_of_passes(runner) == first);
  std::vector<std::vector<std::byte>> elsewhere;
  std::thread([&] {
    LayerRunner<Block32> other(Block32(config), {2, 70});  // its scratch stays behind
    static_cast<void>(bits_of_passes(other));
    LayerRunner<Block32> again(Block32(config), {3, 13});
    elsewhere = bits_of_passes(again);
  }).join();
  CHECK(elsewhere == first);
  static_cast<void>(runner.forward(false));
  CHECK(runner.outputs.content() == first[0]);
}

TEST_CASE("a block only enqueues, and captures nothing that dies with the call") {
  auto config = small(DType::f32, DType::f32);
  config.dropout = 0.1;
  config.query_key_norm = true;
  SUBCASE("without adapters") {}
  SUBCASE("with adapters") {
    config.lora = {.rank = 2, .dropout = 0.1};
  }
  LayerRunner<Block32> at_once(Block32(config), {2, 5});
  using Deferred = nn::TransformerBlock<nn::HostOps<float, test::DeferredStream>>;
  LayerRunner<Deferred> deferred(Deferred(config), {2, 5});
  CHECK(bits_of_passes(deferred) == bits_of_passes(at_once));
}

TEST_CASE("a block accepts smaller extents than its memory was planned for") {
  auto config = small(DType::f32, DType::f32);
  config.dropout = 0.1;
  config.query_key_norm = true;
  config.lora = {.rank = 2, .dropout = 0.1};
  for (BatchShape const shape : {BatchShape{1, 1}, {1, 9}, {4, 1}, {3, 5}, {4, 9}}) {
    LayerRunner<Block32> exact(Block32(config), shape);
    LayerRunner<Block32> roomy(Block32(config), shape, {4, 9});
    static_cast<void>(exact.forward(true));
    static_cast<void>(roomy.forward(true));
    auto const expected = read(exact.tensors.outputs[0]);
    CHECK(read(roomy.tensors.outputs[0]) == expected);
    exact.backward();
    roomy.backward();
    CHECK(read(exact.tensors.input_gradients[0]) == read(roomy.tensors.input_gradients[0]));
    static_cast<void>(roomy.forward(false));
    CHECK(read(roomy.tensors.outputs[0]) == expected);
    auto const declared = exact.layer.footprint(shape);
    auto const planned = exact.layer.footprint({4, 9});
    CHECK(declared.saved_bytes <= planned.saved_bytes);
    CHECK(declared.workspace_bytes <= planned.workspace_bytes);
  }
}

TEST_CASE("a block uses exactly the bytes of its footprint") {
  auto config = small(DType::f32, DType::f32);
  LayerRunner<Block32> runner(Block32(config), {2, 5});
  ForwardContext<HostStream> forward(runner.stream, runner.call, runner.tensors);
  BackwardContext<HostStream> backward(runner.stream, runner.call, runner.tensors);
  static_cast<void>(runner.forward(true));
  runner.tensors.saved = runner.saved.device().subspan(0, runner.saved.device().size() - 256);
  CHECK_THROWS_AS(runner.layer.forward(forward), Error);
  CHECK_THROWS_AS(runner.layer.backward(backward), Error);
  runner.tensors.saved = runner.saved.device();
  auto const workspace = runner.workspace.device();
  runner.tensors.workspace = workspace.subspan(0, workspace.size() - 256);
  auto const runs = [&](bool saving) {  // the pass that needs the most memory must fail
    try {
      runner.call.saving = saving;
      runner.layer.forward(forward);
      runner.layer.backward(backward);
      return true;
    } catch (Error const&) {
      return false;
    }
  };
  CHECK_FALSE((runs(true) && runs(false)));
}

TEST_CASE("a block whose output nobody reads saves the same, and leaves the output alone") {
  auto config = small(DType::f32, DType::f32);
  config.dropout = 0.1;
  for (bool const norm : {false, true}) {
    config.query_key_norm = norm;
    config.attention_bias = config.output_bias = config.mlp_bias = norm;
    LayerRunner<Block32> runner(Block32(config), {2, 5});
    auto const complete = bits_of_passes(runner);
    runner.call.wants_output = false;
    auto const partial = bits_of_passes(runner);
    CHECK(partial[1] == complete[1]);
    CHECK(partial[2] == complete[2]);
    static_cast<void>(runner.forward(true));
    auto const poisoned = runner.outputs.content();
    runner.outputs.poison();
    CHECK(runner.outputs.content() == poisoned);
  }
}

TEST_CASE("a block finds what a save level keeps, and computes the rest") {
  using enum nn::detail::BlockLevel;
  auto config = small(DType::f32, DType::f32);
  config.dropout = 0.1;
  struct Variant {
    bool norm;
    bool biases;
  };
  for (auto const [norm, biases] :
       {Variant{false, false}, {true, false}, {false, true}, {true, true}}) {
    CAPTURE(norm);
    CAPTURE(biases);
    config.query_key_norm = norm;
    config.attention_bias = config.output_bias = config.mlp_bias = biases;
    Block32 const block(config);
    auto const first_bias = norm ? std::size_t{11} : std::size_t{9};
    LayerRunner<Block32> runner(block, {2, 5});
    auto const complete = bits_of_passes(runner);
    static_cast<void>(runner.forward(true));
    auto const content = runner.saved.content();
    auto const levels = block.save_levels({2, 5});
    REQUIRE(levels.size() == keeps_all);
    CHECK(levels.back() == block.footprint({2, 5}).saved_bytes);
    for (std::size_t level = 0; level <= keeps_all; ++level) {
      // What is found needs no parameters.
      std::vector<std::size_t> unread;
      if (level >= keeps_queries) {
        unread = {0, 1, 2, 3};  // input norm, q, k, v
        if (biases) {
          unread.insert(unread.end(), {first_bias, first_bias + 1, first_bias + 2});
        }
      }
      if (level >= keeps_products) {
        unread.insert(unread.end(), {5, 6, 7});  // middle norm, gate, up
        if (biases) {
          unread.insert(unread.end(), {first_bias + 4, first_bias + 5});
        }
      }
      if (level >= keeps_all) {
        unread.push_back(4);  // o
        if (biases) {
          unread.push_back(first_bias + 3);
        }
      }
      if (biases) {
        unread.push_back(first_bias + 6);  // down: nobody wants the output
      }
      std::vector<std::vector<double>> values;
      for (auto const p : unread) {
        values.push_back(read(runner.tensors.parameters[p]));
        test::write(runner.tensors.parameters[p], std::vector<double>(values.back().size(), NAN));
      }
      runner.replay(level, content);
      for (std::size_t i = 0; i < unread.size(); ++i) {
        test::write(runner.tensors.parameters[unread[i]], values[i]);
      }
      runner.parameter_gradients.zero();
      runner.backward();
      CHECK(runner.input_gradients.content() == complete[1]);
      CHECK(runner.parameter_gradients.content() == complete[2]);
    }
  }
}

TEST_CASE("a block computes the same parameter gradients when its input gradient is not wanted") {
  auto const config = small(DType::f64, DType::f64);
  LayerRunner<Block64> runner(Block64(config), {2, 5});
  auto const complete = bits_of_passes(runner);
  runner.tensors.input_gradients[0] = {};
  auto const partial = bits_of_passes(runner);
  CHECK(partial[2] == complete[2]);
}

TEST_CASE("a block with adapters computes what merged weights do") {
  auto config = small(DType::f64, DType::f64);
  config.attention_bias = true;
  config.lora = {.rank = 3, .alpha = 2, .dropout = 0.3};
  LayerRunner<Block64> adapted(Block64(config), {2, 5});
  config.lora = {};
  LayerRunner<Block64> merged(Block64(config), {2, 5});
  test::write(merged.tensors.inputs[0], read(adapted.tensors.inputs[0]));
  auto const base = merged.layer.parameters();
  auto const all = adapted.layer.parameters();
  auto next = base.size();
  for (std::size_t i = 0; i < base.size(); ++i) {
    REQUIRE(all[i].tensor == base[i].tensor);
    auto values = read(adapted.tensors.parameters[i]);
    if (base[i].tensor.name.find("_proj.weight") != std::string::npos) {
      auto const in = static_cast<std::size_t>(base[i].tensor.shape[1]);
      auto const a = read(adapted.tensors.parameters[next++]);
      auto const b = read(adapted.tensors.parameters[next++]);
      for (std::size_t at = 0; at < values.size(); ++at) {
        for (std::size_t k = 0; k < 3; ++k) {
          values[at] += 2.0 / 3 * b[at / in * 3 + k] * a[k * in + at % in];
        }
      }
    }
    test::write(merged.tensors.parameters[i], values);
  }
  CHECK(next == all.size());
  static_cast<void>(merged.forward(false));
  auto const expected = read(merged.tensors.outputs[0]);
  adapted.call.evaluating = true;
  static_cast<void>(adapted.forward(false));
  CHECK(relative_difference(read(adapted.tensors.outputs[0]), expected) < 1e-13);
  adapted.call.evaluating = false;
  static_cast<void>(adapted.forward(false));
  CHECK(relative_difference(read(adapted.tensors.outputs[0]), expected) > 0.01);
}

TEST_CASE("each adapter of a block draws a dropout of its own") {
  auto config = small(DType::f64, DType::f64);
  config.kv_heads = config.heads;
  config.lora = {.rank = 2, .dropout = 0.3};
  LayerRunner<Block64> runner(Block64(config), {2, 5});
  auto const specs = runner.layer.parameters();
  auto const parameter = [&](std::string const& name) {
    auto const found = std::find_if(
        specs.begin(), specs.end(), [&](auto const& spec) { return spec.tensor.name == name; });
    return runner.tensors.parameters[static_cast<std::size_t>(found - specs.begin())];
  };
  for (std::string const matrix : {"weight", "lora_A.weight", "lora_B.weight"}) {
    test::write(parameter("self_attn.k_proj." + matrix),
                read(parameter("self_attn.q_proj." + matrix)));
  }
  auto const queries_equal_keys = [&] {
    static_cast<void>(runner.forward(true));
    TensorCarver saved{runner.saved.device()};
    nn::detail::BlockSaved const s(saved, runner.layer.config(), {2, 5});
    return read(s.q) == read(s.k);
  };
  CHECK_FALSE(queries_equal_keys());
  runner.call.evaluating = true;
  CHECK(queries_equal_keys());
}

TEST_CASE("a block with adapters counts their products, and none for frozen weights") {
  auto config = small(DType::f32, DType::f32);
  auto const plain = Block32(config).work({2, 5});
  auto const frozen = Block32(config, true).work({2, 5});
  double const weights = 24.0 * (32 + 16 + 16 + 32) + 3 * 24 * 40;
  CHECK(frozen.forward_flops == plain.forward_flops);
  CHECK(plain.backward_flops - frozen.backward_flops == doctest::Approx(2 * 10 * weights));
  config.lora = {.rank = 3, .targets = {"q_proj", "down_proj"}};
  auto const work = Block32(config).work({2, 5});
  double const q = 2.0 * 10 * 3 * (24 + 32);
  double const down = 2.0 * 10 * 3 * (40 + 24);
  CHECK(work.forward_flops - frozen.forward_flops == doctest::Approx(q + down));
  CHECK(work.backward_flops - frozen.backward_flops == doctest::Approx(3 * (q + down)));
  CHECK(work.replay_flops[0] - frozen.replay_flops[0] == doctest::Approx(q));
  CHECK(work.replay_flops[2] == frozen.replay_flops[2]);
}

TEST_CASE("adapters begin at the base, and of the spread of peft's") {
  auto config = small(DType::bf16, DType::bf16);
  config.lora = {.rank = 3, .targets = {"down_proj"}};
  auto const table = Block32(config).parameters();
  REQUIRE(table.size() == 11);
  CHECK(table[9].tensor == TensorSpec{"mlp.down_proj.lora_A.weight", {3, 40}, DType::bf16});
  CHECK(table[10].tensor == TensorSpec{"mlp.down_proj.lora_B.weight", {24, 3}, DType::bf16});
  CHECK(table[9].initial.kind == Initial::Kind::normal);
  CHECK(table[9].initial.deviation == doctest::Approx(std::sqrt(1 / (3 * 40.0))));
  CHECK(table[10].initial.kind == Initial::Kind::zeros);
  for (std::size_t i = 0; i < table.size(); ++i) {
    CHECK(table[i].frozen == (i < 9));
  }
}

TEST_CASE("a block describes itself") {
  auto config = small(DType::bf16, DType::bf16);
  config.query_key_norm = true;
  Block32 const block(config);
  CHECK(block.name() == "transformer block");
  auto const table = block.parameters();
  REQUIRE(table.size() == 11);
  CHECK(table[1].tensor == TensorSpec{"self_attn.q_proj.weight", {32, 24}, DType::bf16});
  CHECK(table[2].tensor == TensorSpec{"self_attn.k_proj.weight", {16, 24}, DType::bf16});
  CHECK(table[4].tensor == TensorSpec{"self_attn.o_proj.weight", {24, 32}, DType::bf16});
  CHECK(table[8].tensor == TensorSpec{"mlp.down_proj.weight", {24, 40}, DType::bf16});
  CHECK(table[9].tensor == TensorSpec{"self_attn.q_norm.weight", {8}, DType::bf16});
  for (auto const& spec : table) {
    bool const gain = spec.tensor.shape.rank() == 1;
    CHECK(spec.decay == (gain ? DecayGroup::exempt : DecayGroup::decayed));
    CHECK((spec.initial.kind == Initial::Kind::ones) == gain);
    CHECK(spec.sharing_key.empty());
  }
  CHECK(table[1].initial.deviation == doctest::Approx(0.02));
  CHECK(table[4].initial.deviation == doctest::Approx(0.02 / 4));  // sqrt(2 * 8 layers)
  CHECK(table[8].initial.deviation == doctest::Approx(0.02 / 4));
  auto const work = block.work({2, 5});
  double const weights = 24.0 * (32 + 16 + 16 + 32) + 3 * 24 * 40;
  double const pairs = 2 * 15;  // for each head: 1 + 2 + 3 + 4 + 5 in two rows
  CHECK(work.forward_flops == doctest::Approx(2 * 10 * weights + 2 * 2 * pairs * 32));
  CHECK(work.backward_flops == doctest::Approx(4 * 10 * weights + 5 * 2 * pairs * 32));
}

TEST_CASE("a block counts the keys within its window") {
  auto config = small(DType::bf16, DType::bf16);
  auto const plain = Block32(config).work({2, 5});
  config.sliding_window = 2;
  auto const work = Block32(config).work({2, 5});
  double const spared = 2 * (15 - 9) * 32;  // each query head: 1 + 2 + 2 + 2 + 2 in two rows
  CHECK(plain.forward_flops - work.forward_flops == doctest::Approx(2 * 2 * spared));
  CHECK(plain.backward_flops - work.backward_flops == doctest::Approx(5 * 2 * spared));
  config.sliding_window = 9;
  CHECK(Block32(config).work({2, 5}).forward_flops == plain.forward_flops);
}

TEST_CASE("a block names its biases behind its other parameters, and does not decay them") {
  auto config = small(DType::bf16, DType::bf16);
  auto const biases = [&] {
    std::vector<TensorSpec> specs;
    auto const table = Block32(config).parameters();
    for (std::size_t i = config.query_key_norm ? 11 : 9; i < table.size(); ++i) {
      CHECK(table[i].decay == DecayGroup::exempt);
      CHECK(table[i].initial.kind == Initial::Kind::zeros);
      specs.push_back(table[i].tensor);
    }
    return specs;
  };
  CHECK(biases().empty());
  std::vector<TensorSpec> const attention{{"self_attn.q_proj.bias", {32}, DType::bf16},
                                          {"self_attn.k_proj.bias", {16}, DType::bf16},
                                          {"self_attn.v_proj.bias", {16}, DType::bf16}};
  std::vector<TensorSpec> const output{{"self_attn.o_proj.bias", {24}, DType::bf16}};
  std::vector<TensorSpec> const mlp{{"mlp.gate_proj.bias", {40}, DType::bf16},
                                    {"mlp.up_proj.bias", {40}, DType::bf16},
                                    {"mlp.down_proj.bias", {24}, DType::bf16}};
  for (bool const norm : {false, true}) {
    config.query_key_norm = norm;
    for (unsigned which = 0; which < 8; ++which) {
      config.attention_bias = (which & 1) != 0;
      config.output_bias = (which & 2) != 0;
      config.mlp_bias = (which & 4) != 0;
      std::vector<TensorSpec> expected;
      auto const add = [&](bool there, std::vector<TensorSpec> const& specs) {
        expected.insert(expected.end(), specs.begin(), there ? specs.end() : specs.begin());
      };
      add(config.attention_bias, attention);
      add(config.output_bias, output);
      add(config.mlp_bias, mlp);
      CHECK(biases() == expected);
    }
  }
}

}  // namespace transformer_block_test
