// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Injects faults at every place of a training. The pipeline must always come to an end, say what
// failed, and then show the weights of the last finished step or none.

#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <support/error_of.hpp>
#include <support/own_policies.hpp>
#include <support/pipeline_runs.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace faults_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr std::size_t steps = 5;

/// SGD that throws in update number \c bad; all copies share one count.
class FailingSgd {
 public:
  explicit FailingSgd(std::size_t bad) : bad_(bad) {}
  [[nodiscard]] std::size_t state_arrays() const { return rule_.state_arrays(); }
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    if ((*updates_)++ == bad_) {
      throw std::runtime_error("injected");
    }
    rule_.update(context, weights, gradients, states);
  }

 private:
  Sgd rule_{LearningRate::constant(0.1)};
  std::size_t bad_;
  std::shared_ptr<std::atomic<std::size_t>> updates_ =
      std::make_shared<std::atomic<std::size_t>>(0);
};

EventProtocolOptions const modes[] = {{.master_copies = 2}, {.master_copies = 1}, {.staleness = 0}};

PipelineOptions options_of(StepStart start) {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = 2;
  options.seed = 5;
  options.step_start = start;
  options.verify = false;  // repeats the same plan
  options.optimizer_threads = 1;
  return options;
}

auto model() {
  return toy_model({.dense = 3});
}

/// Trains until an error occurs and compares the remaining weights with \p oracle, the digests by
/// step. \returns whether an error occurred.
template <class O>
bool check_end(HostBackendOptions const& devices,
               EventProtocolOptions const& mode,
               StepStart start,
               O const& optimizer,
               std::vector<std::uint64_t> const& oracle) {
  ToyData const data(2, {2, 3}, 11);
  HostBackend backend{devices};
  auto options = options_of(start);
  options.peer_boundaries = devices.reaches_peers;
  Pipeline pipeline{
      model(),
      optimizer,
      backend,
      options,
      Policies{.protocol = LayerEventProtocol(mode), .partitioner = OneLayerStages{}}};
  auto const error = error_of([&] {
    for (std::size_t i = 0; i < steps; ++i) {
      pipeline.forward_backward(data.batch());
      pipeline.step();
    }
    pipeline.synchronize();
  });
  if (error.code() == std::error_code{}) {
    CHECK(weights_digest(pipeline) == oracle[steps]);
    return false;
  }
  CHECK(error.message().find("injected") != std::string::npos);
  if (error.message().starts_with(name_of(ActionKind::optimizer_step))) {
    CHECK(error.message().find(", layer ") != std::string::npos);
  }
  std::uint64_t digest = 0;
  auto const reading = error_of([&] { digest = weights_digest(pipeline); });
  if (reading.code() == std::error_code{}) {
    CHECK(digest == oracle[pipeline.report().steps]);
  } else {
    CHECK(reading.code() == Errc::aborted);
    CHECK(start == StepStart::each_block);
  }
  return true;
}

std::vector<std::uint64_t> oracle_of(EventProtocolOptions const& mode) {
  ToyData const data(2, {2, 3}, 11);
  SerialTrainer<decltype(model()), Sgd, HostStream> trainer{
      model(),
      Sgd{LearningRate::constant(0.1)},
      serial_options(options_of(StepStart::all_blocks), mode.staleness)};
  std::vector<std::uint64_t> digests{weights_digest(trainer)};
  for (std::size_t i = 0; i < steps; ++i) {
    trainer.forward_backward(data.batch());
    trainer.step();
    digests.push_back(weights_digest(trainer));
  }
  return digests;
}

}  // namespace

TEST_CASE("after a fault in any work of any lane, the weights of the last finished step remain") {
  std::size_t faults = 0;
  std::size_t sent = 0;  // of these: on the way to another device
  for (auto const& mode : modes) {
    auto const oracle = oracle_of(mode);
    for (auto const start : {StepStart::each_block, StepStart::all_blocks}) {
      for (std::size_t kind = 0; kind < device_lane_count; ++kind) {
        for (std::uint64_t const number : {0, 1, 2, 4, 7, 11, 16, 22, 29, 37, 46}) {
          CAPTURE(mode.staleness);
          CAPTURE(mode.master_copies);
          CAPTURE(kind);
          CAPTURE(number);
          auto devices = host_devices(2);
          devices.reaches_peers = static_cast<LaneKind>(kind) == LaneKind::peer;
          devices.delay = [](DeviceId device, LaneKind) {  // the host lanes are slow
            return std::chrono::microseconds(device.valid() ? 0 : 500);
          };
          devices.fault = [=](DeviceId device, LaneKind lane, std::uint64_t piece) {
            if (device == DeviceId(1) && lane == static_cast<LaneKind>(kind) && piece == number) {
              throw std::runtime_error("injected");
            }
          };
          auto const failed =
              check_end(devices, mode, start, Sgd{LearningRate::constant(0.1)}, oracle);
          faults += failed;
          sent += failed && devices.reaches_peers;
        }
      }
    }
  }
  CHECK(faults > 200);
  CHECK(sent > 0);
}

TEST_CASE("an optimizer that throws stops the training, and torn weights are not shown") {
  std::size_t faults = 0;
  for (auto const& mode : modes) {
    auto const oracle = oracle_of(mode);
    for (std::size_t bad = 0; bad < 25; ++bad) {
      CAPTURE(mode.staleness);
      CAPTURE(mode.master_copies);
      CAPTURE(bad);
      faults += check_end(host_devices(2), mode, StepStart::each_block, FailingSgd(bad), oracle);
    }
  }
  CHECK(faults > 60);
}

TEST_CASE("with only frozen parameters, steps change nothing") {
  ToyTypes const types{.frozen = ToyTypes::all};
  Sequential const frozen{ToyInput{types, 3, ""}, ToyDense{types, ""}, ToyLoss{types, 3, ""}};
  ToyData const data(2, {2, 3}, 11);
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{frozen, Sgd{}, backend, options_of(StepStart::each_block)};
  auto const before = weights_digest(pipeline);
  for (std::size_t i = 0; i < 3; ++i) {
    pipeline.forward_backward(data.batch());
    pipeline.step();
  }
  CHECK(weights_digest(pipeline) == before);
  CHECK(pipeline.report().steps == 3);
}

}  // namespace faults_test
