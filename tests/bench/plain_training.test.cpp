// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <plain_loop/plain_training.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/runtime/weights_digest.hpp>
#include <support/pipeline_runs.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plain_training_test {
namespace {

using namespace roundpipe;
using roundpipe::test::ToyData;

constexpr BatchShape shape{2, 3};
constexpr std::size_t micro_batches = 3;
constexpr std::size_t iterations = 6;

auto bf16_model() {
  return test::toy_model(
      {.types = {.parameter = DType::bf16, .boundary = DType::bf16}, .drops = true, .crosses = 1});
}

/// The last loss and the weights.
struct Result {
  double loss = 0;
  std::uint64_t weights = 0;
  friend bool operator==(Result const&, Result const&) = default;
};

Result train_plainly(plain_loop::Beside beside, HostBackendOptions const& machine = {}) {
  HostBackend backend(machine);
  auto const model = bf16_model();
  plain_loop::PlainTraining training(model, backend, shape, micro_batches, beside);
  for (std::size_t i = 0; i < iterations; ++i) {
    training.iterate(ToyData(micro_batches, shape, i).batch());
  }
  auto const loss = training.finish();
  return {loss, weights_digest(training)};
}

/// Without the step of the last iteration; with the step of no iteration unless \p steps.
Result train_serially(bool steps) {
  SerialTrainer trainer{
      bf16_model(),
      AdamW{},
      SerialOptions{.capacity = shape, .micro_batches_per_round = micro_batches, .staleness = 1}};
  Result result;
  for (std::size_t i = 0; i < iterations; ++i) {
    result.loss = trainer.forward_backward(ToyData(micro_batches, shape, i).batch());
    if (steps && i + 1 < iterations) {
      trainer.step();
    }
  }
  result.weights = weights_digest(trainer);
  return result;
}

TEST_CASE("a plain loop with the host's optimizer trains the weights that the oracle trains") {
  auto const oracle = train_serially(true);
  CHECK(train_plainly({.copies = true, .optimizer = true}) == oracle);
  CHECK(oracle.weights != train_serially(false).weights);
}

TEST_CASE("a lane that is slow changes nothing") {
  auto const oracle = train_serially(true);
  for (auto const slow : {LaneKind::compute, LaneKind::parameter_up, LaneKind::gradient_down}) {
    HostBackendOptions machine;
    machine.delay = [slow](DeviceId, LaneKind kind) {
      return std::chrono::microseconds(kind == slow ? 200 : 0);
    };
    CHECK(train_plainly({.copies = true, .optimizer = true}, machine) == oracle);
  }
}

TEST_CASE("without the optimizer the loss is that of the first weights") {
  auto const loss = train_serially(false).loss;
  CHECK(train_plainly({.copies = true, .optimizer = false}).loss == loss);
  CHECK(train_plainly({.copies = false, .optimizer = false}).loss == loss);
}

TEST_CASE("a plain loop refuses parameters that are frozen or not bf16") {
  HostBackend backend;
  auto const refuses = [&](test::ToyModelOptions const& options) {
    auto const model = test::toy_model(options);
    CHECK_THROWS_AS(plain_loop::PlainTraining(model, backend, shape, 1, {}), Error);
  };
  refuses({});
  refuses({.types = {.parameter = DType::bf16, .frozen = 1}});
}

}  // namespace
}  // namespace plain_training_test
