// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/host_lane_work.hpp>

#include <roundpipe/runtime/execute/device_work.hpp>
#include <roundpipe/runtime/execute/executor.hpp>
#include <support/hand_made_graph.hpp>
#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace host_lane_work_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr auto network = host_lane(host_lane_count);  // a lane that the library does not know
constexpr auto all_reduce = static_cast<ActionKind>(200);

/// Adds the gradients of two other hosts, which are the same as this one's.
class NetworkReduction final : public HostLaneWork {
 public:
  explicit NetworkReduction(HostParameters& host) : HostLaneWork({network}), host_(host) {}

  void run(RunState const& run, ActionId id) override {
    auto const& action = run.program()[id];
    for (std::size_t t = 0; t < host_.memory.tensors(action.block); ++t) {
      auto const gradient = host_.memory.gradient(action.block, t, run.call().iteration);
      auto* const values = reinterpret_cast<float*>(gradient.data);
      for (std::size_t i = 0; i < gradient.size; ++i) {
        values[i] *= 3;
      }
    }
  }

 private:
  HostParameters& host_;
};

/// Devices whose downloads let gradients land.
class LandingDevices final : public DeviceWork<HostBackend> {
 public:
  explicit LandingDevices(HostParameters& host) : host_(host) {}

  void issue(RunState const& run, ActionId, HostStream& stream, DeviceId) override {
    stream.launch([this, iteration = run.call().iteration] { host_.land_all(1, iteration); });
  }

 private:
  HostParameters& host_;
};

}  // namespace

TEST_CASE("a reduction between gradient and step takes its lane's work, and no change elsewhere") {
  HostParameters host({});
  LandingDevices devices(host);
  NetworkReduction reduction(host);
  GraphProgram const program(
      graph_of({Made(ActionKind::download_gradients, LaneKind::gradient_down, 0),
                Made(all_reduce, network).after({0}),
                Made(ActionKind::optimizer_step, LaneKind::optimizer).after({1})},
               GraphRole::call,
               1));
  auto const before = host.weights(BlockId(0), 0);
  CallData call;
  Executor<HostBackend> executor(
      host.backend, devices, {&host.accumulator, &host.copier, &reduction, &host.updater}, 1);
  auto& run = executor.make_run(program, call);
  for (std::size_t step = 1; step < 3; ++step) {
    executor.begin(run, step);
    call.iteration = step;
    executor.post(run);
    executor.synchronize();
    auto const after = host.weights(BlockId(0), 0);
    for (std::size_t i = 0; i < before.size(); ++i) {
      CHECK(after[i] == doctest::Approx(before[i] - 3 * static_cast<float>(step)));
    }
  }
}

TEST_CASE("work says how an executor treats its lane") {
  HostParameters host({});
  NetworkReduction const reduction(host);
  CHECK(reduction.lane().kind == network);
  CHECK_FALSE(reduction.lane().outlives_errors);
  CHECK_FALSE(reduction.lane().leads_threads);
  CHECK(host.updater.lane().kind == LaneKind::optimizer);
  CHECK(host.updater.lane().outlives_errors);
  CHECK(host.updater.lane().leads_threads);
}

TEST_CASE("work that has nothing to finish may be abandoned") {
  HostParameters host({});
  NetworkReduction reduction(host);
  GraphProgram const program(graph_of({Made(all_reduce, network)}));
  CallData call;
  RunState const run(program, call);
  auto const before = host.weights(BlockId(0), 0);
  reduction.abandon(run, ActionId(0));
  CHECK(host.weights(BlockId(0), 0) == before);
}

}  // namespace host_lane_work_test
