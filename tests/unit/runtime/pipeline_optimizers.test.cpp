// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Optimizers that want whole parameters, groups and frozen steps give the serial oracle's bits.

#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <support/error_of.hpp>
#include <support/pipeline_runs.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pipeline_optimizers_test {

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// Normalizes the gradient of each matrix, so it needs whole matrices; takes parts of the rest. Its
/// state is a sum of what it subtracts.
struct Normalized {
  static constexpr std::size_t state_arrays() { return 1; }
  static bool updates_whole(ParameterInfo const& parameter) { return parameter.shape.rank() == 2; }
  static void update(UpdateContext const& context,
                     HostSpan<float> weights,
                     HostSpan<float const> gradients,
                     std::span<HostSpan<float> const> states) {
    double squares = 1;
    if (updates_whole(context.parameter)) {
      REQUIRE(weights.size() == context.parameter.shape.size());
      REQUIRE(context.first_element == 0);
      for (auto const g : gradients) {
        squares += static_cast<double>(g) * g;
      }
    }
    auto const factor = static_cast<float>(0.1 / std::sqrt(squares));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      states[0][i] += factor * gradients[i] * context.gradient_factor;
      weights[i] -= states[0][i];
    }
  }
};

static_assert(HasWholeUpdates<Normalized> && !HasFreezes<Normalized>);

PipelineOptions small_options() {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = 3;
  options.seed = 5;
  options.optimizer_threads = 3;
  return options;
}

/// Checks that pipelines of several kinds give the oracle's bits.
template <class O>
void check_equal(O const& optimizer, PipelineOptions const& options, DType type) {
  auto const model = toy_model({.types = {.width = 9, .parameter = type, .boundary = type},
                                .dense = 4,
                                .drops = true,
                                .crosses = 1,
                                .tied = true,
                                .frozen_dense = 1});
  ToyData const data(options.micro_batches_per_round * options.rounds, {2, 3}, 1);
  auto const batch = data.batch();
  for (int const staleness : {0, 1}) {
    auto const wanted = train_serially(model, optimizer, options, staleness, batch, 4);
    for (std::size_t const devices : {1, 3}) {
      CAPTURE(devices);
      CAPTURE(staleness);
      HostBackend backend{host_devices(devices)};
      Pipeline pipeline{
          model, optimizer, backend, options, Policies{.protocol = LayerEventProtocol(staleness)}};
      CHECK(train(pipeline, batch, 4) == wanted);
    }
  }
}

/// \ref check_equal for the types in which parameters and states are kept.
template <class O>
void check_all_types(O const& optimizer) {
  for (auto const type : {DType::f32, DType::bf16}) {
    for (auto const kept : {StateType::fp32, StateType::declared}) {
      CAPTURE(name_of(type));
      auto options = small_options();
      options.state_type = kept;
      check_equal(optimizer, options, type);
      options.clip_norm = 0.5;
      options.rounds = 2;
      check_equal(optimizer, options, type);
    }
  }
}

/// Matrices learn at half the rate; biases rest in even steps.
ParameterGroup alternating(ParameterInfo const& parameter, std::uint64_t step) {
  if (parameter.shape.rank() == 2) {
    return {.rate = 0.5};
  }
  return {.decay = 0, .frozen = step % 2 == 0};
}

}  // namespace

TEST_CASE("an optimizer of whole parameters gives the oracle's bits") {
  check_all_types(Normalized{});
}

TEST_CASE("groups and frozen steps give the oracle's bits") {
  check_all_types(AdamW({.rate = [](std::uint64_t step) { return 0.1 / static_cast<double>(step); },
                         .groups = alternating}));
  check_all_types(
      Sgd({.rate = LearningRate::constant(0.1), .momentum = 0.5, .groups = alternating}));
}

TEST_CASE("a frozen step leaves weights and states, and the next one goes on from them") {
  HostBackend backend{host_devices(2)};
  bool resting = false;
  // A velocity that grew, or that gradients left alone, would show in the last step.
  Sgd const sgd({.rate = LearningRate::constant(0.1),
                 .momentum = 0.5,
                 .groups = [&](ParameterInfo const&, std::uint64_t) {
                   return ParameterGroup{.frozen = resting};
                 }});
  auto const model = toy_model({.dense = 2});
  auto const options = small_options();
  ToyData const data(3, {2, 3}, 1);
  Policies const synchronous{.protocol = LayerEventProtocol(0)};
  auto const batch = data.batch();
  Pipeline pipeline{model, sgd, backend, options, synchronous};
  Pipeline other{model, sgd, backend, options, synchronous};
  (void)train(pipeline, batch, 1);
  resting = true;  // no step is under way: the digest has waited
  auto const rested = train(pipeline, batch, 2);
  CHECK(rested == std::vector<std::uint64_t>(3, rested.front()));
  resting = false;
  auto const last = train(pipeline, batch, 1).back();
  CHECK(last == train(other, batch, 2).back());
  CHECK(last != rested.front());
}

TEST_CASE("updates know the names and shapes that for_each_parameter tells") {
  std::map<std::string, Shape> seen;
  auto const see = [&](ParameterInfo const& parameter, std::uint64_t) {
    seen[std::string(parameter.name)] = parameter.shape;
    return ParameterGroup{};
  };
  HostBackend backend{host_devices(1)};
  auto options = small_options();
  options.optimizer_threads = 1;
  auto const model = toy_model({.dense = 2, .tied = true, .frozen_dense = 1});
  Pipeline pipeline{model, Sgd({.groups = see}), backend, options};
  ToyData const data(3, {2, 3}, 1);
  (void)train(pipeline, data.batch(), 1);
  std::map<std::string, Shape> trained;
  auto const& blocks = pipeline.plan().blocks;
  std::size_t frozen = 0;
  for (auto const& block : blocks.blocks) {
    frozen += block.frozen ? block.specs.size() : 0;
  }
  std::size_t all = 0;
  pipeline.for_each_parameter([&](std::string const& name, Shape const& shape, auto const&) {
    ++all;
    if (seen.contains(name)) {
      trained[name] = shape;
    }
  });
  CHECK(frozen > 0);
  CHECK(seen.size() == all - frozen);
  CHECK(trained == seen);
}

TEST_CASE("the plan counts where whole parameters are widened, the most of one block") {
  auto const bytes = [&](DType type, StateType kept, auto const& optimizer) -> Bytes {
    auto options = small_options();
    options.state_type = kept;
    HostBackend backend{host_devices(1)};
    auto const model =
        toy_model({.types = {.width = 16, .parameter = type, .boundary = type}, .dense = 2});
    Pipeline const pipeline{model, optimizer, backend, options};
    auto const& ledger = pipeline.plan().host.ledger;
    auto const line = std::find_if(ledger.begin(), ledger.end(), [](auto const& entry) {
      return entry.name == "parameters updated as a whole";
    });
    return line == ledger.end() ? 0 : line->bytes;
  };
  constexpr Bytes matrix = 16 * 16 * sizeof(float);
  CHECK(bytes(DType::f32, StateType::fp32, Normalized{}) == 0);
  CHECK(bytes(DType::bf16, StateType::fp32, Normalized{}) == matrix);          // the gradient
  CHECK(bytes(DType::bf16, StateType::declared, Normalized{}) == 3 * matrix);  // and w, state
  CHECK(bytes(DType::bf16, StateType::declared, AdamW{}) == 0);
}

TEST_CASE("an answer of a group that makes no sense is refused by step(), which changes nothing") {
  auto const model = toy_model({.dense = 1});
  ToyData const data(3, {2, 3}, 1);
  auto const makes_sense = std::make_shared<bool>(false);
  Sgd const sgd({.groups = [makes_sense](ParameterInfo const& parameter, std::uint64_t) {
    return ParameterGroup{.rate = *makes_sense || parameter.name.front() != '2' ? 1.0 : -1.0};
  }});
  auto const check = [&](auto& trainer) {
    *makes_sense = false;
    auto const first = weights_digest(trainer);
    trainer.forward_backward(data.batch());
    auto const error = error_of([&] { trainer.step(); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(error.message().find("step 1, parameter '2.") == 0);
    CHECK(error.message().find("multiplies the rate by -1") != std::string::npos);
    trainer.synchronize();
    CHECK(weights_digest(trainer) == first);
    *makes_sense = true;
    trainer.step();
    trainer.synchronize();
    CHECK(weights_digest(trainer) != first);
    return weights_digest(trainer);
  };
  HostBackend backend{host_devices(1)};
  Pipeline pipeline{model, sgd, backend, small_options()};
  SerialTrainer serial{model, sgd, serial_options(small_options(), 1)};
  CHECK(check(pipeline) == check(serial));
}

}  // namespace pipeline_optimizers_test
