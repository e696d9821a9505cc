// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Master copies, gradients, types and errors of a pipeline's optimizer.

#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <support/error_of.hpp>
#include <support/own_policies.hpp>
#include <support/pipeline_runs.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace roundpipe;
using namespace roundpipe::test;

namespace pipeline_modes_test {

PipelineOptions small_options() {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = 3;
  options.seed = 5;
  return options;
}

AdamW adam() {
  return AdamW({.rate = LearningRate::constant(0.01)});
}

ToyTypes types_of(DType type) {
  return {.width = 5, .parameter = type, .boundary = type};
}

/// Passes its input on and adds \c value, a wrong gradient, for its parameter.
struct BadGradient {
  ToyTypes types{};
  float value = std::numeric_limits<float>::quiet_NaN();

  std::string name() const { return "bad gradient"; }
  ParameterTable parameters() const {
    return {{{"bias", {types.width}, types.parameter}, Initial::zeros(), DecayGroup::exempt, {}}};
  }
  TensorTable input(BatchShape shape) const { return types.hidden(shape); }
  TensorTable boundary(BatchShape shape) const { return types.hidden(shape); }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const { copy(ctx, ctx.output(0), ctx.input(0)); }
  void backward(BackwardContext<HostStream>& ctx) const {
    copy(ctx, ctx.input_gradient(0), ctx.output_gradient(0));
    ctx.stream().launch([db = ctx.parameter_gradient(0), v = value] { add(db, 0, v); });
  }

 private:
  static void copy(LayerContext<HostStream>& ctx,
                   DeviceTensor const& to,
                   DeviceTensor const& from) {
    ctx.stream().launch([to, from] {
      for (std::size_t i = 0; i < to.size(); ++i) {
        store(to, i, load(from, i));
      }
    });
  }
};

auto bad_model(ToyTypes const& types, float value) {
  return Sequential{ToyInput{types, 3, ""}, BadGradient{types, value}, ToyLoss{types, 3, ""}};
}

/// The bytes of the host's ledger line that begins with \p words.
Bytes ledger_bytes(PipelinePlan const& plan, std::string const& words) {
  for (auto const& line : plan.ledger) {
    if (line.space == LedgerLine::Space::host && line.name.starts_with(words)) {
      return line.bytes;
    }
  }
  FAIL("the ledger has no line for ", words);
  return 0;
}

template <EventProtocol P>
PipelinePlan planned(ToyModelOptions const& model, PipelineOptions const& options, P protocol) {
  HostBackend backend{host_devices(1)};
  Pipeline pipeline{toy_model(model), adam(), backend, options, Policies{.protocol = protocol}};
  return pipeline.plan();
}

TEST_CASE(
    "state takes 18, 16, 8 and 10 bytes for each parameter, by mode, with padding below 1 %") {
  ToyModelOptions const model{.types = {.width = 256, .parameter = DType::bf16}, .dense = 8};
  auto options = small_options();
  auto const per_parameter = [&](EventProtocolOptions const& protocol, StateType type) {
    options.state_type = type;
    auto const plan = planned(model, options, LayerEventProtocol(protocol));
    CHECK(plan.host.landings.bytes() == 0);
    CHECK(plan.host.state_bytes == ledger_bytes(plan, "master copies") +
                                       ledger_bytes(plan, "optimizer copies and states") +
                                       ledger_bytes(plan, "gradients"));
    return static_cast<double>(plan.host.state_bytes) /
           static_cast<double>(plan.blocks.parameter_count());
  };
  auto const check = [](double measured, double exact) {
    CAPTURE(exact);
    CHECK(measured >= exact);
    CHECK(measured < 1.01 * exact);
  };
  check(per_parameter({.master_copies = 2}, StateType::fp32), 18);
  check(per_parameter({.master_copies = 1}, StateType::fp32), 16);
  check(per_parameter({.staleness = 0}, StateType::fp32), 16);
  check(per_parameter({.staleness = 0}, StateType::declared), 8);
  check(per_parameter({.master_copies = 2}, StateType::declared), 10);
  check(per_parameter({.master_copies = 2, .gradient_buffers = 2}, StateType::fp32), 20);
}

TEST_CASE("rounds, calls and shared parameters have their own staging") {
  ToyModelOptions model{.types = {.width = 64, .parameter = DType::bf16}, .dense = 2};
  auto options = small_options();
  auto const staging = [&] {
    return planned(model, options, LayerEventProtocol(1)).host.landings.bytes();
  };
  CHECK(staging() == 0);
  options.rounds = 2;
  auto const rounds = staging();
  CHECK(rounds > 0);
  options.rounds = 1;
  options.calls_per_step = 2;
  CHECK(staging() == rounds);
  options.calls_per_step = 1;
  model.dense_tied = true;
  CHECK(staging() > 0);
  CHECK(staging() < rounds);
}

TEST_CASE("a frozen parameter costs one master copy, and nothing of it comes down or is updated") {
  ToyModelOptions model{.types = {.width = 64, .parameter = DType::bf16}, .dense = 4};
  model.frozen_dense = 3;
  auto const plan = planned(model, small_options(), LayerEventProtocol(1));
  Bytes frozen = 0;
  Bytes trained = 0;
  Bytes wide = 0;  // the trained parameters in fp32
  for (auto const& block : plan.blocks.blocks) {
    (block.frozen ? frozen : trained) += block.master.bytes();
    wide += block.frozen ? 0 : block.gradient.bytes();
  }
  REQUIRE(frozen > 0);
  CHECK(ledger_bytes(plan, "master copies") == frozen + 2 * trained);
  CHECK(ledger_bytes(plan, "optimizer copies") == 3 * wide);
  CHECK(ledger_bytes(plan, "gradients") == trained);
  std::size_t uploads = 0;
  for (auto const& action : plan.graph.actions) {
    for (auto const& piece : action.pieces) {
      auto const is_frozen = !plan.blocks.trains(piece.use);
      uploads += is_frozen ? 1 : 0;
      CHECK((action.kind == ActionKind::upload_parameters || !is_frozen));
    }
  }
  CHECK(uploads > 0);
  auto const steps = build_step_graph(plan.blocks, LayerEventProtocol(1), {});
  for (auto const& action : steps.actions) {
    CHECK_FALSE(plan.blocks.blocks[action.block.index()].frozen);
  }
}

TEST_CASE("frozen parameters keep their bits, and the others train as in the oracle") {
  ToyData const data(3, {2, 3}, 4);
  auto const model = toy_model(
      {.types = types_of(DType::bf16), .dense = 4, .frozen_input = true, .frozen_dense = 2});
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{model, adam(), backend, small_options()};
  std::vector<float> before(15);
  pipeline.read_parameter(LayerId(0), 0, before);
  CHECK(train(pipeline, data.batch(), 3) ==
        train_serially(model, adam(), small_options(), 1, data.batch(), 3));
  std::vector<float> after(15);
  pipeline.read_parameter(LayerId(0), 0, after);
  CHECK(after == before);
}

TEST_CASE("any entries of rings train the same weights") {
  ToyData const data(6, {2, 3}, 4);
  auto const model = toy_model({.dense = 4});
  auto options = small_options();
  options.rounds = 2;
  options.offloaded_micro_batches = 2;
  auto const expected = train_serially(model, adam(), options, 1, data.batch(), 3);
  for (auto const& entries : {Buffering{1, 1, 1, 1},
                              Buffering{2, 1, 1, 4},
                              Buffering{1, 2, 3, 1},
                              Buffering{4, 3, 2, 2}}) {
    options.buffering = entries;
    HostBackend backend{host_devices(2)};
    Pipeline pipeline{model, adam(), backend, options};
    CHECK(pipeline.plan().stages.memory.buffering == entries);
    CHECK(train(pipeline, data.batch(), 3) == expected);
  }
}

TEST_CASE("a parameter without elements trains nothing and breaks nothing") {
  ToyData const data(3, {2, 3}, 4);
  auto const model = toy_model({.dense = 3, .empty_parameters = true});
  for (auto const& protocol : {LayerEventProtocol(0),
                               LayerEventProtocol(1),
                               LayerEventProtocol({.master_copies = 1, .gradient_buffers = 2})}) {
    HostBackend backend{host_devices(2)};
    Pipeline pipeline{model, adam(), backend, small_options(), Policies{.protocol = protocol}};
    CHECK(train(pipeline, data.batch(), 3) ==
          train_serially(model, adam(), small_options(), protocol.staleness(), data.batch(), 3));
  }
}

TEST_CASE("the two gradients of a parameter that two layers share are summed once") {
  ToyData const data(3, {2, 3}, 4);
  // Two layers share a matrix. With SGD at rate 1, the change is the sum of both gradients.
  auto const change = [&](bool first_frozen, bool last_frozen, std::string const& key) {
    ToyTypes const types = types_of(DType::f32);
    auto first = types;
    auto last = types;
    first.frozen = first_frozen ? 1 : 0;
    last.frozen = last_frozen ? 2 : 0;
    Sequential const model{ToyInput{first, 3, key}, ToyLoss{last, 3, key}};
    HostBackend backend{host_devices(2)};
    Pipeline pipeline{model, Sgd{LearningRate::constant(1)}, backend, small_options()};
    std::vector<float> values(15);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.1F * static_cast<float>(i % 7) - 0.3F;
    }
    pipeline.write_parameter(LayerId(0), 0, values);
    pipeline.write_parameter(LayerId(1), 1, values);
    pipeline.forward_backward(data.batch());
    pipeline.step();
    std::vector<double> changes;
    std::vector<float> after(15);
    for (std::size_t layer : {0, 1}) {
      pipeline.read_parameter(LayerId(layer), layer, after);
      for (std::size_t i = 0; i < after.size(); ++i) {
        changes.push_back(static_cast<double>(after[i]) - static_cast<double>(values[i]));
      }
    }
    return changes;
  };
  auto const apart = change(false, false, "");
  auto const shared = change(false, false, "key");
  for (std::size_t i = 0; i < 15; ++i) {
    CHECK(shared[i] == doctest::Approx(apart[i] + apart[15 + i]).epsilon(1e-4));
    CHECK(shared[i] == shared[15 + i]);
  }
}

TEST_CASE("f16 gradients that overflow skip the step and lower the scale, as in the oracle") {
  ToyData const data(3, {2, 3}, 4);
  auto const model = toy_model({.types = types_of(DType::f16), .dense = 3});
  auto options = small_options();
  options.loss_scale = LossScaleOptions{.initial = 0x1p30, .backoff = 0x1p-8, .growth_interval = 3};
  for (int const staleness : {0, 1}) {
    CAPTURE(staleness);
    HostBackend backend{host_devices(2)};
    Pipeline pipeline{
        model, adam(), backend, options, Policies{.protocol = LayerEventProtocol(staleness)}};
    auto const digests = train(pipeline, data.batch(), 8);
    CHECK(digests == train_serially(model, adam(), options, staleness, data.batch(), 8));
    CHECK(digests[1] == digests[0]);  // the first scale is far too large
    CHECK(pipeline.report().skipped_steps > 0);
    CHECK(pipeline.report().skipped_steps < pipeline.report().steps);
    CHECK(digests[8] != digests[7]);
  }
}

TEST_CASE("NaN gradients are an error when something checks them, and the error names the step") {
  ToyData const data(3, {2, 3}, 4);
  auto const types = types_of(DType::f32);
  auto const run = [&](PipelineOptions const& options) {
    HostBackend backend{host_devices(2)};
    Pipeline pipeline{
        bad_model(types, std::numeric_limits<float>::quiet_NaN()), adam(), backend, options};
    auto const before = weights_digest(pipeline);
    auto const error = error_of([&] {
      for (int i = 0; i < 40; ++i) {
        pipeline.forward_backward(data.batch());
        pipeline.step();
      }
      pipeline.synchronize();
    });
    CHECK(weights_digest(pipeline) == before);
    return error;
  };
  auto options = small_options();
  SUBCASE("by clipping") {
    options.clip_norm = 1;
    auto const error = run(options);
    CHECK(error.code() == Errc::not_finite);
    CHECK(error.message() ==
          "gradient norm of block 1, layer 1 (bad gradient): the gradient's norm at step 1 is not "
          "finite");
  }
  SUBCASE("by a loss scale at its minimum") {
    options.loss_scale = LossScaleOptions{.initial = 16};
    auto const error = run(options);
    CHECK(error.code() == Errc::not_finite);
    CHECK(error.message().find("smallest loss scale") != std::string::npos);
  }
  SUBCASE("by the next loss") {
    HostBackend backend{host_devices(2)};
    Pipeline pipeline{
        bad_model(types, std::numeric_limits<float>::quiet_NaN()), adam(), backend, options};
    auto const error = error_of([&] {
      for (int i = 0; i < 4; ++i) {
        pipeline.forward_backward(data.batch());
        pipeline.step();
      }
    });
    // The forward does not use the bias, so no loss shows the NaN: only the weights do.
    CHECK(error.code() == std::error_code{});
    std::vector<float> bias(5);
    pipeline.read_parameter(LayerId(1), 0, bias);
    CHECK(std::isnan(bias[0]));
    CHECK(bias[1] == 0);
  }
}

TEST_CASE("more calls without a step than planned are refused, and change nothing") {
  ToyData const data(3, {2, 3}, 4);
  auto const model = toy_model({.dense = 1});
  HostBackend backend{host_devices(1)};
  Pipeline pipeline{model, adam(), backend, small_options()};
  auto const before = weights_digest(pipeline);
  pipeline.forward_backward(data.batch());
  auto const error = error_of([&] { pipeline.forward_backward(data.batch()); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message().find("calls_per_step") != std::string::npos);
  pipeline.step();
  CHECK(std::vector{before, weights_digest(pipeline)} ==
        train_serially(model, adam(), small_options(), 1, data.batch(), 1));
}

TEST_CASE("staleness 1 without fp32 weights and a second master copy is refused") {
  auto options = small_options();
  options.state_type = StateType::declared;
  CHECK(error_of([&] {
          planned(
              {.types = types_of(DType::bf16)}, options, LayerEventProtocol({.master_copies = 1}));
        }).code() == Errc::invalid_argument);
}

TEST_CASE("an error that stops a step half-way is not hidden: the weights are refused") {
  ToyData const data(3, {2, 3}, 4);
  auto const model = toy_model({.dense = 4});
  for (auto const start : {StepStart::each_block, StepStart::all_blocks}) {
    auto devices = host_devices(1);
    std::uint64_t downloads = 0;
    // The third download of gradients comes late and fails. By then two blocks are updated, or
    // none.
    devices.delay = [&](DeviceId device, LaneKind kind) {
      auto const late = device.valid() && kind == LaneKind::gradient_down && ++downloads == 3;
      return std::chrono::milliseconds(late ? 100 : 0);
    };
    devices.fault = [](DeviceId, LaneKind kind, std::uint64_t number) {
      if (kind == LaneKind::gradient_down && number == 2) {
        throw std::runtime_error("injected");
      }
    };
    auto options = small_options();
    options.micro_batches_per_round = 1;
    options.step_start = start;
    ToyData const one(1, {2, 3}, 4);
    HostBackend backend{devices};
    Pipeline pipeline{model,
                      adam(),
                      backend,
                      options,
                      Policies{.protocol = LayerEventProtocol(1), .partitioner = OneLayerStages{}}};
    auto const before = weights_digest(pipeline);
    CHECK(error_of([&] {
            pipeline.forward_backward(one.batch());
            pipeline.step();
            pipeline.synchronize();
          }).code() == Errc::device_fault);
    CHECK(pipeline.report().steps == 0);
    if (start == StepStart::all_blocks) {
      CHECK(weights_digest(pipeline) == before);
    } else {
      auto const error = error_of([&] { return weights_digest(pipeline); });
      CHECK(error.code() == Errc::aborted);
      CHECK(error.message().find("half way") != std::string::npos);
    }
  }
}

TEST_CASE(
    "the first forward of the next iteration begins before the optimizer has updated the last "
    "layer") {
  ToyData const data(3, {2, 3}, 4);
  for (auto const& protocol :
       {LayerEventProtocol(1), LayerEventProtocol({.master_copies = 1, .gradient_buffers = 2})}) {
    auto devices = host_devices(2);
    devices.delay = [](DeviceId device, LaneKind kind) {
      auto const updates = !device.valid() && kind == LaneKind::optimizer;
      return std::chrono::milliseconds(updates ? 20 : 0);
    };
    auto options = small_options();
    options.timeline_calls = 100;
    HostBackend backend{devices};
    Pipeline pipeline{
        toy_model({.dense = 4}), adam(), backend, options, Policies{.protocol = protocol}};
    constexpr std::size_t iterations = 4;
    for (std::size_t i = 0; i < iterations; ++i) {
      pipeline.forward_backward(data.batch());
      pipeline.step();
    }
    pipeline.synchronize();
    auto const timeline = pipeline.timeline();
    for (std::size_t i = 0; i + 1 < iterations; ++i) {  // runs: call, step, call, step, ...
      CAPTURE(i);
      double optimizer_ends_s = 0;
      double forward_begins_s = std::numeric_limits<double>::infinity();
      for (auto const& entry : timeline) {
        if (entry.graph == 2 * i + 1 && entry.kind == ActionKind::optimizer_step) {
          optimizer_ends_s = std::max(optimizer_ends_s, entry.end_s);
        }
        if (entry.graph == 2 * i + 2 && entry.kind == ActionKind::forward &&
            entry.layer == LayerId(0)) {
          forward_begins_s = std::min(forward_begins_s, entry.start_s);
        }
      }
      CHECK(forward_begins_s < optimizer_ends_s);
    }
  }
}

}  // namespace pipeline_modes_test
