// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/pipeline_plan.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace pipeline_plan_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

PipelineOptions small_options() {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = 3;
  options.devices = 2;
  options.device_memory = 1_MiB;
  options.host_memory = 64_MiB;
  return options;
}

PipelinePlan plan(PipelineOptions const& options, int staleness = 1) {
  auto const model = toy_model({.dense = 3});
  HostBackendOptions machine;
  machine.devices = 2;
  HostBackend backend(machine);
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol(staleness), Partitioner{}};
  ShapeCache const shapes(model, options.capacity);
  return make_pipeline_plan(model, backend, planner, shapes.capacity(), options, 2);
}

}  // namespace

TEST_CASE("a plan follows its options, and counts every byte") {
  auto const made = plan(small_options());
  CHECK(made.model.size() == 5);
  CHECK(made.costs.layers().size() == 5);
  CHECK(made.graph.devices == 2);
  CHECK(made.stages.memory.bytes <= 1_MiB);
  CHECK(total_bytes(made.ledger, LedgerLine::Space::device) == made.stages.memory.bytes);
  CHECK(total_bytes(made.ledger, LedgerLine::Space::host) > 0);
  std::size_t steps = 0;
  for (auto const& action : made.step.actions) {
    steps += action.kind == ActionKind::optimizer_step ? 1 : 0;
  }
  CHECK(steps == made.blocks.blocks.size());
}

TEST_CASE("a step waits for all gradients when it must see them all") {
  auto options = small_options();
  CHECK_FALSE(waits_for_all(options));
  CHECK_FALSE(step_options(options).measures_gradients);
  options.step_start = StepStart::all_blocks;
  CHECK(waits_for_all(options));
  options = small_options();
  options.clip_norm = 1;
  CHECK(waits_for_all(options));
  options = small_options();
  options.loss_scale.emplace();
  CHECK(waits_for_all(options));
}

TEST_CASE("a plan that does not fit into the host or a device is refused") {
  auto options = small_options();
  options.host_memory = 1000;
  auto const host = error_of([&] { (void)plan(options); });
  CHECK(host.code() == Errc::over_budget);
  CHECK(host.message().find("the host budget of 1000") != std::string::npos);
  options = small_options();
  options.device_memory = 1000;
  CHECK(error_of([&] { (void)plan(options); }).code() == Errc::over_budget);
}

}  // namespace pipeline_plan_test
