// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Runs protocols that leave out one rule, with delays that make the rule matter. The weights then
// differ from the oracle's. This shows that the rules that `verify` requires are needed.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/graph/verify.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <support/error_of.hpp>
#include <support/own_policies.hpp>
#include <support/pipeline_runs.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace roundpipe;
using namespace roundpipe::test;
using enum BlockEventKind;

namespace mutants_run_test {

/// An edge of the protocol: \c later waits for \c earlier.
struct Edge {
  BlockEventKind later = upload;
  BlockEventKind earlier = upload;
};

/// The library's protocol without one edge.
class Mutant {
 public:
  Mutant(EventProtocolOptions options, Edge dropped) : rules_(options), dropped_(dropped) {}

  [[nodiscard]] std::vector<BlockEvent> before(BlockEvent action, std::size_t blocks) const {
    auto events = rules_.before(action, blocks);
    std::erase_if(events, [&](BlockEvent const& event) {
      return action.kind == dropped_.later && event.kind == dropped_.earlier;
    });
    return events;
  }
  [[nodiscard]] int staleness() const { return rules_.staleness(); }
  [[nodiscard]] std::size_t master_copies() const { return rules_.master_copies(); }
  [[nodiscard]] std::size_t gradient_buffers() const { return rules_.gradient_buffers(); }

 private:
  LayerEventProtocol rules_;
  Edge dropped_;
};

static_assert(EventProtocol<Mutant>);

struct Mode {
  char const* name = "";
  EventProtocolOptions options{};
  StateType state_type = StateType::fp32;
};

Mode const single{"single master", {.master_copies = 1}};
Mode const doubled{"double master", {.master_copies = 2}};
Mode const two_buffers{"double master, two gradient buffers",
                       {.master_copies = 2, .gradient_buffers = 2}};
Mode const all_bf16{"bf16 states", {.master_copies = 2}, StateType::declared};
Mode const synchronous{"synchronous", {.staleness = 0}};

auto model() {
  return toy_model(
      {.types = {.width = 4, .parameter = DType::bf16, .boundary = DType::bf16}, .dense = 3});
}

PipelineOptions options_of(Mode const& mode) {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = 2;
  options.seed = 3;
  options.state_type = mode.state_type;
  options.step_start = StepStart::each_block;  // waits for all blocks would imply some rules
  return options;
}

AdamW optimizer() {
  return AdamW({.rate = LearningRate::constant(0.1)});
}

/// The digest of the weights after some steps, when each action of \p slow takes \p delay longer.
template <EventProtocol P>
std::uint64_t digest(Mode const& mode,
                     P const& protocol,
                     LaneKind slow,
                     std::chrono::milliseconds delay) {
  ToyData const data(2, {2, 3}, 1);
  auto devices = host_devices(1);
  devices.delay = [=](DeviceId, LaneKind kind) {
    return kind == slow ? std::chrono::nanoseconds(delay) : std::chrono::nanoseconds(0);
  };
  HostBackend backend(devices);
  auto options = options_of(mode);
  options.verify = false;
  Pipeline pipeline{model(),
                    optimizer(),
                    backend,
                    options,
                    Policies{.protocol = protocol, .partitioner = OneLayerStages{}}};
  for (int step = 0; step < 5; ++step) {
    pipeline.forward_backward(data.batch());
    pipeline.step();
  }
  pipeline.synchronize();
  return weights_digest(pipeline);
}

std::uint64_t oracle(Mode const& mode) {
  ToyData const data(2, {2, 3}, 1);
  SerialTrainer<decltype(model()), AdamW, HostStream> trainer{
      model(), optimizer(), serial_options(options_of(mode), mode.options.staleness)};
  for (int step = 0; step < 5; ++step) {
    trainer.forward_backward(data.batch());
    trainer.step();
  }
  return weights_digest(trainer);
}

/// Checks that with a slow \p slow, \p mode goes wrong without \p edge, and is right with the edge.
void check_mutant(Mode const& mode, Edge edge, LaneKind slow, Rule rule) {
  CAPTURE(std::string(mode.name));
  CAPTURE(std::string(name_of(rule)));
  auto const expected = oracle(mode);
  std::chrono::milliseconds delay(4);
  CHECK(digest(mode, LayerEventProtocol(mode.options), slow, delay) == expected);
  bool differs = false;  // a machine under load may need longer delays
  for (; !differs && delay < std::chrono::milliseconds(200); delay *= 2) {
    differs = digest(mode, Mutant(mode.options, edge), slow, delay) != expected;
  }
  CHECK(differs);
  HostBackend backend(host_devices(1));
  auto const error = error_of([&] {
    Pipeline(model(),
             optimizer(),
             backend,
             options_of(mode),
             Policies{.protocol = Mutant(mode.options, edge), .partitioner = OneLayerStages{}});
  });
  CHECK(error.code() == Errc::unsafe_graph);
  CHECK(error.message().find(name_of(rule)) != std::string::npos);
}

#ifdef __SANITIZE_THREAD__
constexpr bool races_are_errors = true;
#else
constexpr bool races_are_errors = false;
#endif

TEST_CASE("without a rule the weights are wrong, single master" * doctest::skip(races_are_errors)) {
  check_mutant(single, {parameter_copy, upload}, LaneKind::parameter_up, Rule::upload_before_copy);
  check_mutant(
      single, {upload, parameter_copy}, LaneKind::parameter_copy, Rule::copy_before_upload);
  check_mutant(single,
               {optimizer_step, gradient_write},
               LaneKind::gradient_down,
               Rule::gradient_before_reader);
  check_mutant(
      single, {gradient_write, optimizer_step}, LaneKind::optimizer, Rule::reader_before_gradient);
  check_mutant(
      single, {optimizer_step, parameter_copy}, LaneKind::parameter_copy, Rule::copy_between_steps);
  check_mutant(
      single, {parameter_copy, optimizer_step}, LaneKind::optimizer, Rule::copy_between_steps);
}

TEST_CASE("without a rule the weights are wrong, double master" * doctest::skip(races_are_errors)) {
  for (auto const& mode : {doubled, two_buffers, all_bf16}) {
    check_mutant(mode, {upload, parameter_copy}, LaneKind::optimizer, Rule::copy_before_upload);
    check_mutant(mode,
                 {optimizer_step, gradient_write},
                 LaneKind::gradient_down,
                 Rule::gradient_before_reader);
  }
  for (auto const& mode : {doubled, all_bf16}) {
    check_mutant(
        mode, {gradient_write, optimizer_step}, LaneKind::optimizer, Rule::reader_before_gradient);
  }
}

TEST_CASE("without a rule the weights are wrong, synchronous" * doctest::skip(races_are_errors)) {
  check_mutant(
      synchronous, {upload, parameter_copy}, LaneKind::optimizer, Rule::copy_before_upload);
  check_mutant(synchronous,
               {optimizer_step, gradient_write},
               LaneKind::gradient_down,
               Rule::gradient_before_reader);
}

}  // namespace mutants_run_test
