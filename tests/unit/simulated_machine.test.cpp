// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/simulated_machine.hpp>

#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <support/pipeline_runs.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cstddef>

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

DeviceProperties linked(double upload, double download) {
  DeviceProperties device;
  device.upload_bytes_per_second = upload;
  device.download_bytes_per_second = download;
  return device;
}

}  // namespace

TEST_CASE("a plan's machine has its costs and the device's links, a timeline's what was measured") {
  HostBackend backend{host_devices(2)};
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches = 3;
  options.timeline_calls = 8;
  Pipeline pipeline{toy_model({.dense = 3}), Sgd{}, backend, options};
  ToyData const data(3, {2, 3}, 1);
  auto const& plan = pipeline.plan();
  auto const planned = simulated_machine(plan, linked(3e9, 2e9));
  CHECK(planned.link.upload_bytes_per_second == 3e9);
  CHECK(planned.link.download_bytes_per_second == 2e9);
  CHECK(planned.waits_for_losses);
  CHECK(planned.compute.step_s.empty());
  REQUIRE(planned.compute.layers.size() == plan.model.size());
  CHECK(planned.compute.layers[1].forward_s == plan.costs.layers()[1].forward_s);

  for (int step = 0; step < 4; ++step) {
    pipeline.forward_backward(data.batch());
    pipeline.step();
  }
  auto const timeline = pipeline.timeline();
  auto const measured = simulated_machine(plan, linked(3e9, 2e9), timeline);
  auto const fitted = fit_costs(plan.costs.layers(), timeline);
  for (std::size_t i = 0; i < fitted.size(); ++i) {
    CHECK(measured.compute.layers[i].forward_s == fitted[i].forward_s);
    CHECK(measured.compute.layers[i].backward_s == fitted[i].backward_s);
  }
  CHECK(measured.compute.step_s == fit_step_seconds(plan.blocks.blocks.size(), timeline));
  CHECK(forecast_iteration_seconds(plan.graph, plan.step, measured) > 0);
}
