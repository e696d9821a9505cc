// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/actions/action_dispatcher.hpp>

#include <roundpipe/runtime/execute/executor.hpp>
#include <support/error_of.hpp>
#include <support/hand_made_graph.hpp>
#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace action_dispatcher_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr auto network = host_lane(host_lane_count);  // a lane that the library does not know
constexpr auto all_reduce = static_cast<ActionKind>(200);

/// Devices whose downloads let gradients land.
struct LandingDevices {
  HostParameters& host;

  void issue(RunState const& run, ActionId, HostStream& stream, DeviceId) {
    stream.launch([this, iteration = run.call().iteration] { host.land_all(1, iteration); });
  }
};

/// Adds the gradients of two other hosts, which are the same as this one's.
struct NetworkReduction {
  static constexpr HostLaneTraits lane{network};
  HostParameters& host;

  void run(Action const& action, CallData const& call) {
    for (std::size_t t = 0; t < host.memory.tensors(action.block); ++t) {
      auto const gradient = host.memory.gradient(action.block, t, call.iteration);
      auto* const values = reinterpret_cast<float*>(gradient.data);
      for (std::size_t i = 0; i < gradient.size; ++i) {
        values[i] *= 3;
      }
    }
  }
};

/// Writes down what it is asked.
struct LoggedLane {
  static constexpr HostLaneTraits lane{LaneKind::accumulate};
  std::vector<ActionId> abandoned;

  void run(Action const&, CallData const&) {}
  void abandon(ActionGraph const&, ActionId id, CallData const&) { abandoned.push_back(id); }
};

}  // namespace

TEST_CASE("a reduction between gradient and step takes its lane's work, and no change elsewhere") {
  HostParameters host({});
  LandingDevices devices{host};
  NetworkReduction reduction{host};
  ActionDispatcher work(devices, host.accumulator, host.copier, reduction, host.updater);
  GraphProgram const program(
      graph_of({Made(ActionKind::download_gradients, LaneKind::gradient_down, 0),
                Made(all_reduce, network).after({0}),
                Made(ActionKind::optimizer_step, LaneKind::optimizer).after({1})},
               GraphRole::call,
               1));
  auto const before = host.weights(BlockId(0), 0);
  CallData call;
  Executor<HostBackend, decltype(work)> executor(host.backend, work, 1);
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

TEST_CASE("the lanes are those of the work, as it wants them treated") {
  HostParameters host({});
  LandingDevices devices{host};
  NetworkReduction reduction{host};
  ActionDispatcher const work(devices, reduction, host.updater);
  auto const lanes = decltype(work)::host_lanes();
  REQUIRE(lanes.size() == 2);
  CHECK(lanes[0].kind == network);
  CHECK_FALSE(lanes[0].outlives_errors);
  CHECK(lanes[1].kind == LaneKind::optimizer);
  CHECK(lanes[1].outlives_errors);
}

TEST_CASE("an action goes to the work of its lane, and one without work is refused") {
  HostParameters host({});
  LandingDevices devices{host};
  LoggedLane logged;
  ActionDispatcher work(devices, logged, host.copier);
  GraphProgram const program(graph_of({Made(ActionKind::accumulate_gradient, LaneKind::accumulate),
                                       Made(ActionKind::copy_parameters, LaneKind::parameter_copy),
                                       Made(ActionKind::optimizer_step, LaneKind::optimizer)}));
  CallData call;
  RunState run(program, call);
  work.run(run, ActionId(1));
  work.abandon(run, ActionId(0));
  work.abandon(run, ActionId(1));  // the copier has nothing to finish
  CHECK(logged.abandoned == std::vector{ActionId(0)});
  CHECK(error_of([&] { work.run(run, ActionId(2)); }).code() == Errc::unsupported);
}

}  // namespace action_dispatcher_test
