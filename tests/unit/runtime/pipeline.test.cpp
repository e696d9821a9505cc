// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/pipeline.hpp>

#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/unplanned_transfers.hpp>
#include <support/error_of.hpp>
#include <support/made_model.hpp>
#include <support/no_threads.hpp>
#include <support/own_policies.hpp>
#include <support/pipeline_runs.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace pipeline_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

PipelineOptions small_options() {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = 3;
  options.rounds = 2;
  options.seed = 5;
  return options;
}

Sgd momentum() {
  return Sgd{SgdOptions{.rate = LearningRate::constant(0.1), .momentum = 0.5}};
}

/// A device warms up before it reaches full speed. Counts streams: each probe of a layer makes one.
struct SlowToStart : HostBackend {
  using HostBackend::HostBackend;
  static constexpr double warm_up_seconds = 0;

  [[nodiscard]] HostStream make_stream(DeviceId device, LaneKind kind) {
    ++streams;
    return HostBackend::make_stream(device, kind);
  }
  std::size_t streams = 0;
};

/// Round robin, but without support for a single micro-batch.
struct NeverOne : RoundRobinSchedule {
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const {
    require(shape.micro_batches_per_round != 1, Errc::unsupported, "one micro-batch");
    return RoundRobinSchedule::tasks(shape);
  }
};

auto three_layers() {
  return toy_model({.dense = 1});
}

/// The result of a pipeline on \p devices devices with its own policies.
std::vector<std::uint64_t> piped(std::size_t devices,
                                 Batch const& batch,
                                 Policies const& policies) {
  HostBackend backend{host_devices(devices)};
  Pipeline pipeline{toy_model({.dense = 4, .drops = true, .crosses = 1, .tied = true}),
                    momentum(),
                    backend,
                    small_options(),
                    policies};
  return train(pipeline, batch, 4);
}

Error refused(PipelineOptions const& options) {
  HostBackend backend{host_devices(2)};
  return error_of([&] { Pipeline(three_layers(), momentum(), backend, options); });
}

}  // namespace

TEST_CASE("custom schedule, transfers and protocol give the oracle's weights") {
  ToyData const data(6, {2, 3}, 1);
  auto const batch = data.batch();
  auto const oracle = [&](int staleness) {
    return train_serially(toy_model({.dense = 4, .drops = true, .crosses = 1, .tied = true}),
                          momentum(),
                          small_options(),
                          staleness,
                          batch,
                          4);
  };
  LayerEventProtocol const synchronous(0);
  for (std::size_t devices : {1, 3}) {
    CAPTURE(devices);
    CHECK(piped(devices, batch, {.schedule = LoopedBfs{}, .protocol = synchronous}) == oracle(0));
    CHECK(piped(devices, batch, {.transfers = CopyAtOnce{}, .protocol = synchronous}) == oracle(0));
    CHECK(piped(devices, batch, {.transfers = UnplannedTransfers{}, .protocol = synchronous}) ==
          oracle(0));
    CHECK(piped(devices, batch, {.protocol = BlockingProtocol{0}}) == oracle(0));
    CHECK(piped(devices, batch, {.protocol = BlockingProtocol{1}}) == oracle(1));
    CHECK(piped(devices,
                batch,
                {.schedule = LoopedBfs{},
                 .transfers = CopyAtOnce{},
                 .protocol = BlockingProtocol{1}}) == oracle(1));
  }
}

TEST_CASE("a boundary of two tensors and a layer without parameters train as in the oracle") {
  auto const model = toy_model({.dense = 1, .drops = true, .crosses = 2});
  ToyData const data(6, {2, 3}, 2);
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{model, momentum(), backend, small_options()};
  CHECK(train(pipeline, data.batch(), 3) ==
        train_serially(model, momentum(), small_options(), 1, data.batch(), 3));
}

TEST_CASE("a model whose layers are chosen at run time trains as the same Sequential does") {
  MadeModel<ToyInput, ToyDense, ToyLoss> const made{
      {ToyInput{}, ToyDense{}, ToyDense{}, ToyLoss{}}};
  Sequential const same{ToyInput{}, repeat(2, ToyDense{}), ToyLoss{}};
  ToyData const data(6, {2, 3}, 2);
  auto const wanted = train_serially(same, momentum(), small_options(), 1, data.batch(), 3);
  CHECK(train_serially(made, momentum(), small_options(), 1, data.batch(), 3) == wanted);
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{made, momentum(), backend, small_options()};
  CHECK(train(pipeline, data.batch(), 3) == wanted);
}

TEST_CASE("micro-batches of different lengths train as in the oracle") {
  ToyData const data({{2, 3}, {1, 3}, {2, 1}, {1, 1}, {2, 2}, {1, 2}}, 3);
  auto const model = toy_model({.dense = 3, .crosses = 1});
  HostBackend backend{host_devices(3)};
  Pipeline pipeline{model, momentum(), backend, small_options()};
  CHECK(train(pipeline, data.batch(), 3) ==
        train_serially(model, momentum(), small_options(), 1, data.batch(), 3));
}

TEST_CASE(
    "new shapes that arrive late, on devices that must warm up for them, train as in the oracle") {
  ToyData const data({{2, 3}, {2, 3}, {2, 3}, {2, 3}, {2, 3}, {2, 3}}, 3);
  ToyData const late({{2, 3}, {1, 3}, {2, 1}, {2, 3}, {2, 2}, {1, 2}}, 3);
  auto const model = toy_model({.dense = 3, .crosses = 1});
  HostBackend measure{host_devices(2)};
  auto options = small_options();
  options.device_memory = Pipeline(model, momentum(), measure, options).plan().stages.memory.bytes;
  auto backend_options = host_devices(2);
  backend_options.device_memory_bytes = options.device_memory;
  SlowToStart backend{backend_options};
  Pipeline pipeline{model, momentum(), backend, options};
  SerialTrainer<decltype(toy_model({})), Sgd, HostStream> oracle{
      model, momentum(), serial_options(options, 1)};
  auto const different = detail::runs_of_equal_layers(model, pipeline.plan().model.size()).size();
  auto const extents = different * 2;  // trials of extents that are new: on both devices
  auto const trials = [&, before = backend.streams]() mutable {
    return backend.streams - std::exchange(before, backend.streams);
  };
  auto const train_on = [&](Batch const& batch) {
    CHECK(pipeline.forward_backward(batch) == oracle.forward_backward(batch));
    pipeline.step();
    oracle.step();
  };
  auto count = trials;
  train_on(data.batch());
  CHECK(count() == 0);
  train_on(late.batch());
  CHECK(count() == 4 * extents);
  train_on(data.batch());
  train_on(late.batch());
  CHECK(count() == 0);
  CHECK(pipeline.evaluate(late.batch()).loss == oracle.evaluate(late.batch()).loss);
  CHECK(weights_digest(pipeline) == weights_digest(oracle));
}

TEST_CASE("a step made of two calls sums their gradients as the oracle does") {
  ToyData const data(6, {2, 3}, 4);
  auto const model = toy_model({.dense = 3, .tied = true});
  auto options = small_options();
  options.calls_per_step = 2;
  for (int const staleness : {0, 1}) {
    HostBackend backend{host_devices(2)};
    Pipeline pipeline{
        model, momentum(), backend, options, Policies{.protocol = LayerEventProtocol(staleness)}};
    CHECK(train(pipeline, data.batch(), 3, 2) ==
          train_serially(model, momentum(), small_options(), staleness, data.batch(), 3, 2));
  }
}

TEST_CASE("calls posted ahead train as in the oracle, and their losses come in order") {
  auto const model = toy_model({.dense = 3, .drops = true});
  std::vector<ToyData> data;
  for (std::uint64_t step = 0; step < 6; ++step) {
    data.emplace_back(6, BatchShape{2, 3}, step);
  }
  for (int const staleness : {0, 1}) {
    SerialTrainer<decltype(model), Sgd, HostStream> oracle{
        model, momentum(), serial_options(small_options(), staleness)};
    HostBackend backend{host_devices(3)};
    Pipeline pipeline{model,
                      momentum(),
                      backend,
                      small_options(),
                      Policies{.protocol = LayerEventProtocol(staleness)}};
    pipeline.post_call(data[0].batch());
    pipeline.step();
    for (std::size_t step = 1; step <= data.size(); ++step) {
      if (step < data.size()) {
        pipeline.post_call(data[step].batch());
        pipeline.step();
        CHECK(error_of([&] { pipeline.post_call(data[0].batch()); }).code() ==
              Errc::invalid_argument);
      }
      CHECK(error_of([&] { pipeline.forward_backward(data[0].batch()); }).code() ==
            Errc::invalid_argument);
      CHECK(pipeline.take_loss() == oracle.forward_backward(data[step - 1].batch()));
      oracle.step();
    }
    CHECK(error_of([&] { pipeline.take_loss(); }).code() == Errc::invalid_argument);
    CHECK(weights_digest(pipeline) == weights_digest(oracle));
  }
}

TEST_CASE("a call is posted while the devices still work on the one before") {
  std::promise<void> posted;
  auto const both = posted.get_future().share();
  auto options = host_devices(2);
  options.fault = [&](DeviceId device, LaneKind lane, std::uint64_t number) {
    if (device == DeviceId(0) && lane == LaneKind::compute && number == 0) {
      both.wait();
    }
  };
  ToyData const data(6, {2, 3}, 4);
  HostBackend backend{options};
  Pipeline pipeline{three_layers(), momentum(), backend, small_options()};
  for (int i = 0; i < 2; ++i) {
    pipeline.post_call(data.batch());
    pipeline.step();
  }
  posted.set_value();
  auto const first = pipeline.take_loss();
  CHECK(pipeline.take_loss() == first);  // a staleness of 1: the weights are the first ones
}

TEST_CASE("losses that were not taken are gone behind recover and restore") {
  ToyData const data(6, {2, 3}, 4);
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{three_layers(), momentum(), backend, small_options()};
  pipeline.post_call(data.batch());
  CHECK(pipeline.recover() == 0);
  pipeline.forward_backward(data.batch());
  pipeline.step();
  pipeline.post_call(data.batch());
  pipeline.step();
  pipeline.restore(pipeline.state());
  pipeline.forward_backward(data.batch());
}

TEST_CASE("stages balanced by measured costs give the same weights") {
  ToyData const data(6, {2, 3}, 4);
  auto const model = toy_model({.dense = 5, .drops = true});
  auto options = small_options();
  options.costs = CostSource::measured;
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{model, momentum(), backend, options};
  for (auto const& cost : pipeline.plan().costs.layers()) {
    CHECK(cost.forward_s > 0);
    CHECK(cost.backward_s > 0);
  }
  CHECK(train(pipeline, data.batch(), 3) ==
        train_serially(model, momentum(), options, 1, data.batch(), 3));
}

TEST_CASE("the smallest budget that an error names works, and 256 bytes less do not") {
  auto options = small_options();
  options.device_memory = 1;
  auto const message = refused(options).message();
  CHECK(refused(options).code() == Errc::over_budget);
  CHECK(message.find("layer ") != std::string::npos);
  std::string const words = "the smallest budget that works is ";
  REQUIRE(message.find(words) != std::string::npos);
  auto const smallest = std::stoull(message.substr(message.find(words) + words.size()));

  options.device_memory = smallest - 256;
  CHECK(refused(options).code() == Errc::over_budget);
  options.device_memory = smallest;
  ToyData const data(6, {2, 3}, 6);
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{three_layers(), momentum(), backend, options};
  CHECK(pipeline.plan().stages.memory.bytes <= smallest);
  CHECK(train(pipeline, data.batch(), 3) ==
        train_serially(three_layers(), momentum(), options, 1, data.batch(), 3));
}

TEST_CASE("invalid options are refused") {
  auto options = small_options();
  options.micro_batches_per_round = 0;
  CHECK(refused(options).code() == Errc::invalid_argument);
  options = small_options();
  options.rounds = 0;
  CHECK(refused(options).code() == Errc::invalid_argument);
  options = small_options();
  options.capacity.rows = 0;
  CHECK(refused(options).code() == Errc::invalid_argument);
  options = small_options();
  options.devices = 3;
  CHECK(refused(options).code() == Errc::invalid_argument);
  options = small_options();
  options.clip_norm = -1;
  CHECK(refused(options).code() == Errc::invalid_argument);
  options = small_options();
  options.host_memory = 1000;
  CHECK(refused(options).code() == Errc::over_budget);
}

TEST_CASE("numbers in options that no machine can hold are refused by name") {
  auto const most = std::numeric_limits<std::size_t>::max();
  auto const check = [](PipelineOptions const& options, std::string const& message) {
    auto const error = refused(options);
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(error.message() == message);
  };
  auto const number = std::to_string(most);
  auto options = small_options();
  options.micro_batches_per_round = most;
  check(options,
        "2 rounds of " + number + " micro-batches are more than the 1048576 that a call may have");
  options = small_options();
  options.rounds = most;
  check(options,
        number + " rounds of 3 micro-batches are more than the 1048576 that a call may have");
  options.rounds = 349526;  // times 3 is 1048578
  check(options, "349526 rounds of 3 micro-batches are more than the 1048576 that a call may have");
  options.micro_batches_per_round = 4;
  options.rounds = std::size_t{1} << 62;  // times 4 is 0 in 64 bits
  check(options,
        "4611686018427387904 rounds of 4 micro-batches are more than the 1048576 that a call may "
        "have");
  options = small_options();
  options.optimizer_threads = most;
  check(options, "optimizer_threads is " + number + ", more than 4096");
  options = small_options();
  options.devices = most;
  CHECK(refused(options).code() == Errc::invalid_argument);
  options = small_options();
  options.calls_per_step = most;  // is as good as no limit
  CHECK(refused(options).message() == "nothing was thrown");
}

TEST_CASE("a machine without threads for a pipeline is an error that says so") {
  HostBackend backend{host_devices(2)};
  Sequential const model = three_layers();
  test::NoThreads const none;
  auto const error = error_of([&] { Pipeline(model, momentum(), backend, small_options()); });
  CHECK(error.code() == std::errc::resource_unavailable_try_again);
  CHECK(error.message().find("the system starts no thread for ") == 0);
}

TEST_CASE("layers that do not match are refused by name") {
  HostBackend backend{host_devices(1)};
  auto const options = small_options();
  ToyTypes const wide{.width = 8};
  auto const error = error_of([&] {
    Pipeline(Sequential{ToyInput{}, ToyDense{wide}, ToyLoss{wide}}, momentum(), backend, options);
  });
  CHECK(error.code() == Errc::boundary_mismatch);
  CHECK(error.message().find("layer 1 (toy dense)") != std::string::npos);
  CHECK(error_of([&] {
          Pipeline(Sequential{ToyInput{}, ToyDense{}}, momentum(), backend, options);
        }).code() == Errc::invalid_argument);
}

TEST_CASE("a batch that does not fit is refused and changes nothing") {
  ToyData const data(6, {2, 3}, 7);
  ToyData const short_data(5, {2, 3}, 7);
  ToyData const long_data(6, {2, 4}, 7);
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{three_layers(), momentum(), backend, small_options()};
  CHECK(error_of([&] { pipeline.step(); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { pipeline.forward_backward(short_data.batch()); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([&] { pipeline.forward_backward(long_data.batch()); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([&] { pipeline.forward_backward(Batch(6, {2, 3})); }).code() ==
        Errc::invalid_argument);
  CHECK(train(pipeline, data.batch(), 2) ==
        train_serially(three_layers(), momentum(), small_options(), 1, data.batch(), 2));
}

TEST_CASE("evaluate uses the newest weights, for any number of micro-batches") {
  ToyData const data(6, {2, 3}, 8);
  ToyData const validation({{2, 3}, {1, 2}, {2, 2}, {2, 3}, {1, 1}}, 9);
  auto const model = toy_model({.dense = 2, .drops = true});
  SerialTrainer<decltype(toy_model({})), Sgd, HostStream> serial{
      model, momentum(), serial_options(small_options(), 1)};
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{model, momentum(), backend, small_options()};
  for (int i = 0; i < 3; ++i) {
    CHECK(pipeline.forward_backward(data.batch()) == serial.forward_backward(data.batch()));
    pipeline.step();
    serial.step();
    auto const ours = pipeline.evaluate(validation.batch());
    auto const theirs = serial.evaluate(validation.batch());
    CHECK(ours.loss == theirs.loss);
    for (std::size_t m = 0; m < 5; ++m) {
      auto const mine = ours.result<float>(m, 0);
      auto const other = theirs.result<float>(m, 0);
      CHECK(std::equal(mine.begin(), mine.end(), other.begin(), other.end()));
    }
  }
  pipeline.synchronize();
  CHECK(weights_digest(pipeline) == weights_digest(serial));
}

TEST_CASE("evaluations change no bit of the training, and say which weights they see") {
  ToyData const data(6, {2, 3}, 8);
  ToyData const validation(2, {2, 3}, 9);
  auto const model = toy_model({.dense = 2, .drops = true});
  auto options = small_options();
  options.calls_per_step = 2;
  for (auto const& mode : {EventProtocolOptions{.master_copies = 2},
                           EventProtocolOptions{.master_copies = 1},
                           EventProtocolOptions{.staleness = 0}}) {
    auto const outcome_of = [&](bool evaluates) {
      HostBackend backend{host_devices(2)};
      Pipeline pipeline{
          model, momentum(), backend, options, Policies{.protocol = LayerEventProtocol(mode)}};
      std::vector<double> losses;
      for (std::uint64_t step = 0; step < 5; ++step) {
        for (int call = 0; call < 2; ++call) {
          losses.push_back(pipeline.forward_backward(data.batch()));
          if (evaluates) {
            auto const age = mode.staleness == 1 && mode.master_copies == 1 && step > 0 ? 1U : 0U;
            CHECK(pipeline.evaluate(validation.batch()).step == step - age);
          }
        }
        pipeline.step();
      }
      return std::pair(losses, weights_digest(pipeline));
    };
    CHECK(outcome_of(true) == outcome_of(false));
  }
}

TEST_CASE("an evaluation that is refused is refused again, and other evaluations work") {
  ToyData const four(4, {2, 3}, 9);
  ToyData const three(3, {2, 3}, 9);
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{
      three_layers(), momentum(), backend, small_options(), Policies{.schedule = NeverOne{}}};
  auto const before = pipeline.evaluate(three.batch()).loss;
  for (int i = 0; i < 2; ++i) {
    auto const error = error_of([&] { (void)pipeline.evaluate(four.batch()); });
    CHECK(error.code() == Errc::unsupported);
  }
  CHECK(pipeline.evaluate(three.batch()).loss == before);
}

TEST_CASE("a loss that is NaN stops the pipeline, and the error names step and stage") {
  ToyData data(6, {2, 3}, 10);
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{three_layers(), momentum(), backend, small_options()};
  pipeline.forward_backward(data.batch());
  pipeline.step();
  data.targets().front() = std::numeric_limits<float>::quiet_NaN();
  data.mask().front() = 1;
  auto const error = error_of([&] { pipeline.forward_backward(data.batch()); });
  CHECK(error.code() == Errc::not_finite);
  CHECK(error.message().find("step 2") != std::string::npos);
  CHECK(error.message().find("stage ") != std::string::npos);
  CHECK(error_of([&] { pipeline.step(); }).code() == Errc::not_finite);
}

TEST_CASE(
    "a NaN loss of a call before the last is known when its step has run, which recover keeps") {
  ToyData bad(6, {2, 3}, 10);
  bad.targets().front() = std::numeric_limits<float>::quiet_NaN();
  bad.mask().front() = 1;
  ToyData const good(6, {2, 3}, 10);
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{three_layers(), momentum(), backend, small_options()};
  pipeline.post_call(bad.batch());
  pipeline.step();
  pipeline.post_call(good.batch());
  auto const error = error_of([&] { pipeline.take_loss(); });
  CHECK(error.code() == Errc::not_finite);
  CHECK(error.message().find("step 1") != std::string::npos);
  CHECK(error_of([&] { pipeline.take_loss(); }).code() == Errc::not_finite);
  CHECK(pipeline.recover() == 1);
  CHECK(error_of([&] { pipeline.take_loss(); }).code() == Errc::invalid_argument);
}

TEST_CASE("a fault names layer, stage and device, and leaves the weights of a finished step") {
  ToyData const data(6, {2, 3}, 11);
  auto const model = toy_model({.dense = 4});
  auto planned = small_options();
  planned.step_start = StepStart::all_blocks;
  for (int const staleness : {0, 1}) {
    auto const oracle =
        train_serially(model, momentum(), small_options(), staleness, data.batch(), 8);
    for (std::uint64_t operation = 40; operation < 320; operation += 60) {
      CAPTURE(operation);
      auto options = host_devices(2);
      options.fault = [&](DeviceId device, LaneKind lane, std::uint64_t number) {
        if (device == DeviceId(1) && lane == LaneKind::compute && number == operation) {
          throw std::runtime_error("injected");
        }
      };
      HostBackend backend{options};
      Pipeline pipeline{
          model, momentum(), backend, planned, Policies{.protocol = LayerEventProtocol(staleness)}};
      auto const error = error_of([&] {
        for (int i = 0; i < 8; ++i) {
          pipeline.forward_backward(data.batch());
          pipeline.step();
        }
        pipeline.synchronize();
      });
      REQUIRE(error.code() == Errc::device_fault);
      CHECK(error.message().find("injected") != std::string::npos);
      CHECK(error.message().find("of layer ") != std::string::npos);
      CHECK(error.message().find(" (toy ") != std::string::npos);
      CHECK(error.message().find("stage ") != std::string::npos);
      CHECK(error.message().find("device 1") != std::string::npos);
      CHECK(error_of([&] { pipeline.synchronize(); }).message() == error.message());
      auto const finished = pipeline.report().steps;
      REQUIRE(finished < oracle.size());
      CHECK(weights_digest(pipeline) == oracle[finished]);
    }
  }
}

TEST_CASE("parameters can be read and written") {
  ToyData const data(6, {2, 3}, 12);
  HostBackend backend{host_devices(2)};
  auto const model = toy_model({.dense = 2, .tied = true});
  Pipeline pipeline{model, momentum(), backend, small_options()};
  SerialTrainer<decltype(toy_model({})), Sgd, HostStream> serial{
      model, momentum(), serial_options(small_options(), 1)};
  train(pipeline, data.batch(), 2);
  train(serial, data.batch(), 2);
  std::vector<float> const values(16, 0.25F);
  pipeline.write_parameter(LayerId(1), 0, values);
  serial.write_parameter(LayerId(1), 0, values);
  std::vector<float> read(16);
  pipeline.read_parameter(LayerId(1), 0, read);
  CHECK(read == values);
  std::vector<float> const by_name(16, 0.5F);
  pipeline.write_parameter("1.weight", by_name);
  serial.write_parameter("1.weight", by_name);
  pipeline.read_parameter("1.weight", read);
  CHECK(read == by_name);
  CHECK(train(pipeline, data.batch(), 2) == train(serial, data.batch(), 2));
  auto const overwrite = [](std::vector<ParameterArrays> const& parameters) {
    CHECK(parameters.size() > 1);
    for (auto const& [name, shape, copies] : parameters) {
      CHECK(!copies.empty());
      for (HostArray const& copy : copies) {
        CHECK(copy.size == shape.size());
        if (name == "1.weight") {  // the others stay as they are
          std::fill_n(reinterpret_cast<float*>(copy.data), copy.size, 0.125F);
        }
      }
    }
  };
  pipeline.overwrite_parameters(overwrite);
  serial.overwrite_parameters(overwrite);
  pipeline.read_parameter("1.weight", read);
  CHECK(read == std::vector<float>(16, 0.125F));
  CHECK(train(pipeline, data.batch(), 2) == train(serial, data.batch(), 2));
  CHECK(error_of([&] { pipeline.read_parameter(LayerId(1), 2, read); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([&] { pipeline.read_parameter(LayerId(9), 0, read); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([&] { pipeline.read_parameter(LayerId(1), 1, read); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([&] { pipeline.write_parameter(LayerId(1), 1, values); }).code() ==
        Errc::invalid_argument);  // changes nothing, even while weights are visible
  CHECK(train(pipeline, data.batch(), 2) == train(serial, data.batch(), 2));
}

TEST_CASE("gradients of the calls since the last step are read as the oracle has them") {
  auto options = small_options();
  options.calls_per_step = 2;
  options.loss_scale = LossScaleOptions{.initial = 1024};
  ToyTypes const types{5, DType::bf16, DType::bf16};
  auto const model = toy_model({.types = types, .dense = 2, .tied = true, .frozen_dense = 1});
  ToyData const data(6, {2, 3}, 12);
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{model, momentum(), backend, options};
  SerialTrainer<decltype(toy_model({})), Sgd, HostStream> serial{
      model, momentum(), serial_options(options, 1)};
  auto const refused = [](auto&& read) { return error_of(read).code() == Errc::invalid_argument; };
  std::vector<float> actual(5);
  CHECK(refused([&] { pipeline.read_gradient("2.bias", actual); }));  // no call yet
  for (std::size_t step = 0; step < 3; ++step) {
    for (std::size_t call = 0; call < 2; ++call) {
      std::vector<float> expected(5);
      pipeline.forward_backward(data.batch());
      serial.forward_backward(data.batch());
      pipeline.read_gradient("2.bias", actual);
      serial.read_gradient("2.bias", expected);
      CHECK(actual == expected);
      CHECK(std::any_of(actual.begin(), actual.end(), [](float g) { return g != 0; }));
      pipeline.read_gradient(LayerId(2), 1, expected);
      CHECK(actual == expected);
    }
    CHECK(refused([&] { pipeline.read_gradient("1.bias", actual); }));  // frozen
    CHECK(refused([&] { serial.read_gradient("1.bias", actual); }));
    pipeline.step();
    serial.step();
    CHECK(refused([&] { pipeline.read_gradient("2.bias", actual); }));
  }
  CHECK(weights_digest(pipeline) == weights_digest(serial));
}

TEST_CASE("a state is taken between steps, and refused where it does not fit, without a trace") {
  ToyData const data(6, {2, 3}, 12);
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{three_layers(), momentum(), backend, small_options()};
  Pipeline other{three_layers(), momentum(), backend, small_options()};
  train(pipeline, data.batch(), 2);
  train(other, data.batch(), 2);

  auto state = pipeline.state();
  CHECK(state.position.step == 2);
  CHECK(state.position.visible_step == 1);
  CHECK(state.position.calls == 2);
  CHECK(state.parameters.front().name == "0.weight");
  state.parameters.back().optimizer.clear();
  CHECK(
      error_of([&] { pipeline.restore(state); }).message().starts_with("parameter 2.weight has 1"));
  state = pipeline.state();
  state.position.seed = 6;
  CHECK(error_of([&] { pipeline.restore(state); }).code() == Errc::invalid_argument);
  state = pipeline.state();
  state.position.loss_scale = LossScaleState{.value = 4, .recorded_steps = 1};
  CHECK(error_of([&] { pipeline.restore(state); }).code() == Errc::invalid_argument);

  pipeline.forward_backward(data.batch());
  CHECK(error_of([&] { (void)pipeline.state(); }).code() == Errc::invalid_argument);
  pipeline.step();
  train(other, data.batch(), 1);
  CHECK(train(pipeline, data.batch(), 2) == train(other, data.batch(), 2));
}

TEST_CASE("a restored pipeline reports the calls and steps of the whole training") {
  ToyData const data(6, {2, 3}, 12);
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{three_layers(), momentum(), backend, small_options()};
  train(pipeline, data.batch(), 3);
  Pipeline other{three_layers(), momentum(), backend, small_options()};
  other.restore(pipeline.state());
  CHECK(other.state().position.first_device == pipeline.state().position.first_device);
  CHECK(other.report().training_s == 0);
  train(other, data.batch(), 1);
  auto const report = other.report();
  CHECK(report.calls == 4);
  CHECK(report.steps == 4);
  CHECK(report.training_s > 0);
  other.restart_report();
  CHECK(other.report().training_s == 0);
}

TEST_CASE("the ledger lists the allocated bytes") {
  HostBackend backend{host_devices(2)};
  Pipeline pipeline{three_layers(), momentum(), backend, small_options()};
  auto const& ledger = pipeline.plan().ledger;
  auto const report = pipeline.report();
  CHECK(total_bytes(ledger, LedgerLine::Space::device) == report.device_bytes_peak);
  CHECK(total_bytes(ledger, LedgerLine::Space::host) == report.host_bytes_peak);
}

}  // namespace pipeline_test
