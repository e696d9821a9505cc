// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/language_model_head.hpp>

#include <roundpipe/nn/host_ops.hpp>
#include <support/error_of.hpp>
#include <support/nn_harness.hpp>
#include <support/nn_reference.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace language_model_head_test {

namespace {

using namespace roundpipe;
using test::LayerRunner;
using test::Numbers;
using test::read;
using test::relative_difference;
using Labels = std::vector<std::int32_t>;

using Head64 = nn::LanguageModelHead<nn::HostOps<double>>;
using Head32 = nn::LanguageModelHead<nn::HostOps<float>>;

nn::TransformerConfig small(DType type) {
  nn::TransformerConfig config;
  config.vocabulary = 37;
  config.hidden = 16;
  config.heads = 4;
  config.storage = type;
  config.parameter = type;
  return config;
}

/// All logits, computed by plain loops: [positions][vocabulary].
template <class L>
std::vector<Numbers> logits_of(LayerRunner<L> const& runner) {
  auto const& c = runner.layer.config();
  auto const x = read(runner.tensors.inputs[0]);
  auto const gain = read(runner.tensors.parameters[0]);
  auto const weight = read(runner.tensors.parameters[1]);
  std::vector<Numbers> logits;
  for (auto first = x.begin(); first != x.end(); first += c.hidden) {
    auto const h = test::ReferenceBlock::norm({first, first + c.hidden}, gain, c.norm_epsilon);
    logits.push_back(test::ReferenceBlock::project(h, weight));
  }
  return logits;
}

/// The sum of -log softmax(logits)[label], computed by plain loops.
double loss_of(std::vector<Numbers> const& logits, Labels const& labels, std::int32_t padding) {
  double loss = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != padding) {
      double sum = 0;
      for (auto const logit : logits[i]) {
        sum += std::exp(logit);
      }
      loss -= std::log(std::exp(logits[i][static_cast<std::size_t>(labels[i])]) / sum);
    }
  }
  return loss;
}

Labels some_labels(std::size_t count, std::int32_t vocabulary) {
  Labels labels;
  for (std::size_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<std::int32_t>(random_word({9, 9, 9, 9, 9}, i) %
                                               static_cast<std::uint32_t>(vocabulary)));
  }
  return labels;
}

/// Runs both passes of training. \returns the loss, which the backward writes.
template <class Runner>
double train(Runner& runner) {
  static_cast<void>(runner.forward(true));
  return runner.backward();
}

HostTensor host_labels(Labels const& labels) {
  return {std::as_bytes(std::span(labels)), {static_cast<std::int64_t>(labels.size())}, DType::i32};
}

}  // namespace

TEST_CASE("the loss and the last logits of a head match plain loops for every chunk size") {
  auto config = small(DType::f64);
  for (std::int64_t const chunk : {1, 2, 5, 12, 100}) {
    config.loss_chunk = chunk;
    LayerRunner<Head64> runner(Head64(config), {3, 4});
    auto labels = some_labels(12, 37);
    labels[4] = labels[11] = config.padding_label;
    test::write(runner.tensors.side_inputs[0], labels);
    runner.call.gradient_scale = 0.125;
    auto const logits = logits_of(runner);
    auto const expected = 0.125 * loss_of(logits, labels, config.padding_label);
    CHECK(train(runner) == doctest::Approx(expected).epsilon(1e-13));
    CHECK(runner.forward(false, true) == doctest::Approx(expected).epsilon(1e-13));
    Numbers last;
    for (std::size_t const position : {3, 7, 11}) {
      last.insert(last.end(), logits[position].begin(), logits[position].end());
    }
    CHECK(runner.tensors.results[0].dtype() == DType::f32);
    CHECK(relative_difference(read(runner.tensors.results[0]), last) < 1e-7);
  }
}

TEST_CASE("a position with a padding label has no loss and no gradient") {
  auto const config = small(DType::f64);
  LayerRunner<Head64> runner(Head64(config), {1, 4});
  test::write(runner.tensors.side_inputs[0], Labels{5, -100, 7, -100});
  auto const loss = train(runner);
  auto const gradient = read(runner.tensors.input_gradients[0]);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    CHECK((gradient[i] == 0) == (i / 16 % 2 == 1));
  }
  for (std::size_t i = 16; i < 32; ++i) {
    test::write_one(runner.tensors.inputs[0], i, 3.0);
  }
  CHECK(train(runner) == loss);
  test::write(runner.tensors.side_inputs[0], Labels{-100, -100, -100, -100});
  CHECK(train(runner) == 0);
  CHECK(read(runner.tensors.input_gradients[0]) == Numbers(64));
}

TEST_CASE("a head handles logits whose exponentials overflow") {
  auto const config = small(DType::f32);
  LayerRunner<Head32> runner(Head32(config), {1, 3});
  test::write_random(runner.tensors.parameters[1], 1, 300.0, 0.0);
  test::write(runner.tensors.side_inputs[0], Labels{1, 2, 3});
  auto const loss = train(runner);
  CHECK(std::isfinite(loss));
  CHECK(loss > 100);
  for (auto const g : read(runner.tensors.input_gradients[0])) {
    CHECK(std::isfinite(g));
  }
}

TEST_CASE("a head in float and with bf16 tensors is as accurate as its types allow") {
  auto config = small(DType::f32);
  double loss_tolerance = 1e-6;
  double tolerance = 1e-5;
  SUBCASE("f32") {}
  SUBCASE("bf16") {
    config.storage = config.parameter = DType::bf16;
    loss_tolerance = 2e-3;  // the norm is rounded, the logits are not
    tolerance = 0.02;
  }
  SUBCASE("bf16 in chunks") {
    config.storage = config.parameter = DType::bf16;
    config.loss_chunk = 5;
    loss_tolerance = 2e-3;
    tolerance = 0.02;
  }
  LayerRunner<Head32> narrow(Head32(config), {2, 6});
  config.storage = config.parameter = DType::f64;
  LayerRunner<Head64> wide(Head64(config), {2, 6});
  for (std::size_t i = 0; i < 2; ++i) {
    test::write(wide.tensors.parameters[i], read(narrow.tensors.parameters[i]));
  }
  test::write(wide.tensors.inputs[0], read(narrow.tensors.inputs[0]));
  test::write(narrow.tensors.side_inputs[0], some_labels(12, 37));
  test::write(wide.tensors.side_inputs[0], some_labels(12, 37));
  CHECK(train(narrow) == doctest::Approx(train(wide)).epsilon(loss_tolerance));
  CHECK(relative_difference(read(narrow.tensors.input_gradients[0]),
                            read(wide.tensors.input_gradients[0])) < tolerance);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(relative_difference(read(narrow.tensors.parameter_gradients[i]),
                              read(wide.tensors.parameter_gradients[i])) < tolerance);
  }
}

TEST_CASE("a head repeats its bits, also in memory that was planned for more") {
  auto config = small(DType::bf16);
  config.loss_chunk = 4;
  auto const passes = [](LayerRunner<Head32>& runner) {
    runner.parameter_gradients.zero();
    auto const loss = train(runner);
    auto numbers = read(runner.tensors.input_gradients[0]);
    for (auto const& t : runner.tensors.parameter_gradients) {
      auto const more = read(t);
      numbers.insert(numbers.end(), more.begin(), more.end());
    }
    numbers.push_back(loss);
    return numbers;
  };
  for (BatchShape const shape : {BatchShape{1, 1}, {2, 3}, {3, 5}}) {
    LayerRunner<Head32> exact(Head32(config), shape);
    LayerRunner<Head32> roomy(Head32(config), shape, {3, 5});
    auto const labels = some_labels(static_cast<std::size_t>(shape.positions()), 37);
    test::write(exact.tensors.side_inputs[0], labels);
    test::write(roomy.tensors.side_inputs[0], labels);
    auto const first = passes(exact);
    CHECK(passes(exact) == first);
    CHECK(passes(roomy) == first);
  }
}

TEST_CASE("a head never needs memory for all logits at once") {
  auto config = small(DType::f32);
  config.loss_chunk = 8;
  Head32 const head(config);
  auto const few = head.footprint({1, 8});
  auto const many = head.footprint({16, 64});
  auto const positions = Bytes{1024};
  CHECK(many.saved_bytes == 0);
  CHECK(many.workspace_bytes - few.workspace_bytes < positions * (16 * 4 + 12) + 2048);
}

TEST_CASE("a head adds to its parameter gradients when its input gradient is not wanted") {
  LayerRunner<Head64> runner(Head64(small(DType::f64)), {2, 3});
  test::write(runner.tensors.side_inputs[0], some_labels(6, 37));
  runner.parameter_gradients.zero();
  train(runner);
  auto const complete = runner.parameter_gradients.content();
  runner.parameter_gradients.zero();
  runner.tensors.input_gradients[0] = {};
  train(runner);
  CHECK(runner.parameter_gradients.content() == complete);
}

TEST_CASE("a head counts the labels that are not padding, and refuses invalid labels") {
  Head32 const head(small(DType::f32));
  static_assert(LossLayer<Head32>);
  auto const count = [&](Labels const& labels, BatchShape shape) {
    HostTensor const tensor = host_labels(labels);
    return head.loss_terms(std::span(&tensor, 1), shape);
  };
  CHECK(count({1, 2, 3, 4, 5, 6}, {2, 3}) == 6);
  CHECK(count({-100, 0, 36, -100}, {2, 2}) == 2);
  CHECK(count({-100}, {1, 1}) == 0);
  auto const error = test::error_of([&] { count({1, 37}, {1, 2}); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message().find("label 37 is outside the vocabulary of 37") != std::string::npos);
  CHECK(test::error_of([&] { count({1, -1}, {1, 2}); }).code() == Errc::invalid_argument);
  CHECK(test::error_of([&] { count({1, 2, 3}, {1, 2}); }).code() == Errc::invalid_argument);
  CHECK(test::error_of([&] { static_cast<void>(head.loss_terms({}, {1, 2})); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("a label outside the vocabulary stops the stream before it is used") {
  auto const config = small(DType::f32);
  for (std::int32_t const label : {37, -1, -101}) {
    LayerRunner<Head32> runner(Head32(config), {1, 2});
    test::write(runner.tensors.side_inputs[0], Labels{0, label});
    CHECK(test::error_of([&] { runner.forward(false); }).code() == Errc::invalid_argument);
    CHECK(test::error_of([&] { runner.backward(); }).code() == Errc::invalid_argument);
  }
}

TEST_CASE("a head describes itself") {
  auto config = small(DType::bf16);
  SUBCASE("with its own table") {}
  SUBCASE("with the embedding's table") {
    config.tied = true;
  }
  Head32 const head(config);
  CHECK(head.name() == "language model head");
  auto const table = head.parameters();
  REQUIRE(table.size() == 2);
  CHECK(table[0].tensor == TensorSpec{"norm.weight", {16}, DType::bf16});
  CHECK(table[0].decay == DecayGroup::exempt);
  CHECK(table[0].sharing_key.empty());
  CHECK(table[1].tensor == TensorSpec{"lm_head.weight", {37, 16}, DType::bf16});
  CHECK(table[1].sharing_key == (config.tied ? "token_embedding" : ""));
  CHECK(table[1].decay == (config.tied ? DecayGroup::exempt : DecayGroup::decayed));
  CHECK(head.boundary({2, 3}).empty());
  CHECK(head.side_inputs({2, 3})[0] == TensorSpec{"labels", {2, 3}, DType::i32});
  CHECK(head.results({2, 3})[0] == TensorSpec{"last_logits", {2, 37}, DType::f32});
  CHECK(head.work({2, 3}).forward_flops == 0);
  CHECK(head.work({2, 3}).backward_flops == doctest::Approx(6.0 * 6 * 16 * 37));
  config.lora = {.rank = 5, .targets = {"lm_head"}};  // a tied one gets none
  double const adapter = config.tied ? 0 : 8.0 * 6 * 5 * (16 + 37);
  CHECK(Head32(config).work({2, 3}).backward_flops == doctest::Approx(4.0 * 6 * 16 * 37 + adapter));
  CHECK(Head32(config).parameters().size() == (config.tied ? 2 : 4));
}

}  // namespace language_model_head_test
