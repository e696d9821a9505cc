// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Plants NaNs in what a layer writes. With check_finite the first of them is named, by the pipeline
// and by the serial trainer, and the training goes on behind it.

#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/own_policies.hpp>
#include <support/pipeline_runs.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace check_finite_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

enum class Place { nowhere, output, input_gradient, parameter_gradient };

/// A dense layer that writes an infinite number in micro-batch 1 of call 2.
struct FaultyDense : ToyDense {
  std::shared_ptr<Place> place;

  void forward(ForwardContext<HostStream>& ctx) const {
    ToyDense::forward(ctx);
    if (is_bad(ctx, Place::output) && ctx.wants_output()) {
      ctx.stream().launch([y = ctx.output(0)] { spoil(y); });
    }
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ToyDense::backward(ctx);
    if (is_bad(ctx, Place::input_gradient)) {
      ctx.stream().launch([dx = ctx.input_gradient(0)] { spoil(dx); });
    }
    if (is_bad(ctx, Place::parameter_gradient)) {
      ctx.stream().launch([db = ctx.parameter_gradient(1)] { spoil(db); });
    }
  }

 private:
  template <class Context>
  bool is_bad(Context const& ctx, Place wanted) const {
    return *place == wanted && ctx.random().step == 2 && ctx.random().micro_batch == 1;
  }
  static void spoil(DeviceTensor const& tensor) {
    store(tensor, 3, -std::numeric_limits<float>::infinity());
  }
};

struct Setup {
  DType type = DType::f32;
  int staleness = 1;
  std::size_t devices = 1;
  std::optional<LossScaleOptions> loss_scale{};
};

auto model_of(Setup const& setup, std::shared_ptr<Place> const& place) {
  ToyTypes const types{.width = 5, .parameter = setup.type, .boundary = setup.type};
  return Sequential{ToyInput{types, 3, ""},
                    ToyDense{types, ""},
                    FaultyDense{{types, ""}, place},
                    ToyDense{types, ""},
                    ToyLoss{types, 3, ""}};
}
using Model = decltype(model_of({}, nullptr));

PipelineOptions options_of(Setup const& setup) {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = 2;
  options.seed = 5;
  options.optimizer_threads = 1;
  options.loss_scale = setup.loss_scale;
  options.check_finite = true;
  return options;
}

std::string wanted(Place place) {
  return place == Place::output           ? "output 'hidden'[3] is -inf"
         : place == Place::input_gradient ? "input gradient 'hidden'[3] is -inf"
                                          : "gradient of parameter 'bias'[3] is -inf";
}

void check_message(Error const& error, Place place) {
  auto const message = error.message();
  CAPTURE(message);
  CHECK(error.code() == Errc::not_finite);
  CHECK(contains(message, wanted(place)));
  CHECK(contains(message, place == Place::output ? "forward" : "backward"));
  CHECK(contains(message, "layer 2 (toy dense)"));
  CHECK(contains(message, "micro-batch 1"));
}

/// Trains six steps, of which the third fails, and goes on.
void check_pipeline(Setup const& setup, Place bad) {
  auto const place = std::make_shared<Place>(bad);
  auto const options = options_of(setup);
  ToyData const data(2, options.capacity, 7);
  auto const batch = data.batch();
  HostBackend backend{host_devices(setup.devices)};
  Pipeline pipeline{model_of(setup, place),
                    Sgd({.rate = LearningRate::constant(0.1)}),
                    backend,
                    options,
                    Policies{.protocol = LayerEventProtocol({.staleness = setup.staleness}),
                             .partitioner = OneLayerStages{}}};
  auto const error = error_of([&] {
    (void)train(pipeline, batch, 3);
    pipeline.synchronize();
  });
  check_message(error, bad);
  CHECK(pipeline.recover() == 2);
  *place = Place::nowhere;
  (void)train(pipeline, batch, 4);

  auto const oracle = train_serially(model_of(setup, place),
                                     Sgd({.rate = LearningRate::constant(0.1)}),
                                     options,
                                     setup.staleness,
                                     batch,
                                     6);
  CHECK(weights_digest(pipeline) == oracle.back());
}

void check_serial(Setup const& setup, Place bad) {
  auto const options = options_of(setup);
  auto serial = serial_options(options, setup.staleness);
  serial.check_finite = true;
  ToyData const data(2, options.capacity, 7);
  SerialTrainer<Model, Sgd, HostStream> trainer{
      model_of(setup, std::make_shared<Place>(bad)), Sgd({}), serial};
  check_message(error_of([&] { (void)train(trainer, data.batch(), 3); }), bad);
}

}  // namespace

TEST_CASE("the first value of a layer that is not finite is named, and the training goes on") {
  for (auto const bad : {Place::output, Place::input_gradient, Place::parameter_gradient}) {
    for (auto const type : {DType::f32, DType::bf16}) {
      for (int const staleness : {0, 1}) {
        CAPTURE(wanted(bad));
        CAPTURE(name_of(type));
        CAPTURE(staleness);
        check_serial({type, staleness}, bad);
        check_pipeline({type, staleness, 1}, bad);
        check_pipeline({type, staleness, 3}, bad);
      }
    }
  }
}

TEST_CASE("with a loss scale a backward may overflow, and its step is skipped") {
  Setup const setup{.type = DType::f32, .devices = 2, .loss_scale = LossScaleOptions{}};
  auto const options = options_of(setup);
  ToyData const data(2, options.capacity, 7);
  HostBackend backend{host_devices(setup.devices)};
  Pipeline pipeline{model_of(setup, std::make_shared<Place>(Place::parameter_gradient)),
                    Sgd({}),
                    backend,
                    options};
  (void)train(pipeline, data.batch(), 4);
  CHECK(pipeline.report().skipped_steps == 1);

  Pipeline refusing{
      model_of(setup, std::make_shared<Place>(Place::output)), Sgd({}), backend, options};
  check_message(error_of([&] { (void)train(refusing, data.batch(), 4); }), Place::output);
}

TEST_CASE("evaluations are examined, too") {
  auto const place = std::make_shared<Place>(Place::nowhere);
  auto const options = options_of({});
  ToyData const data(2, options.capacity, 7);
  HostBackend backend{host_devices(1)};
  Pipeline pipeline{model_of({}, place), Sgd({}), backend, options};
  auto const size = pipeline.plan().model.layers[3].parameters[1].tensor.shape.size();
  pipeline.write_parameter("3.bias",
                           std::vector<float>(size, std::numeric_limits<float>::quiet_NaN()));
  auto const error = error_of([&] { (void)pipeline.evaluate(data.batch()); });
  CHECK(error.code() == Errc::not_finite);
  CHECK(contains(error.message(), "layer 3 (toy dense)"));
  CHECK(contains(error.message(), "output 'hidden'[0] is nan"));
}

TEST_CASE("the memory of the examinations is in the ledger") {
  auto options = options_of({});
  HostBackend backend{host_devices(3)};
  auto const bytes = [&] {
    Pipeline const pipeline{
        model_of({}, std::make_shared<Place>(Place::nowhere)), Sgd({}), backend, options};
    return total_bytes(pipeline.plan().ledger, LedgerLine::Space::host);
  };
  auto const with = bytes();
  options.check_finite = false;
  CHECK(with - bytes() == Bytes{3} << 20U);
}

}  // namespace check_finite_test
