// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/host_lane_worker.hpp>

#include <support/error_of.hpp>
#include <support/hand_made_graph.hpp>
#include <support/logged_work.hpp>

#include <doctest/doctest.h>

#include <thread>
#include <vector>

namespace host_lane_worker_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A download, a sum, and a step, each after the one before.
struct Working {
  HostBackend backend;
  LoggedWork work;
  HostProgress<HostBackend> hosts{backend, work.lanes};
  HostLaneWorker<HostBackend> worker{backend, *work.host_lanes().back(), hosts};
  GraphProgram program{graph_of({Made(ActionKind::download_gradients, LaneKind::gradient_down, 0),
                                 Made(ActionKind::accumulate_gradient, LaneKind::accumulate),
                                 Made(ActionKind::optimizer_step, LaneKind::optimizer).after({0}),
                                 Made(ActionKind::optimizer_step, LaneKind::optimizer).after({1})},
                                GraphRole::call,
                                1)};
  CallData data;
  GraphRun<HostBackend> run{backend, program, data};

  Working() {
    run.begin(0, {});
    run.set_host_base(LaneKind::optimizer, 0);
    run.set_host_base(LaneKind::accumulate, 0);
  }
};

}  // namespace

TEST_CASE("an action of a host lane waits for a device action") {
  Working test;
  auto stream = test.backend.make_stream(DeviceId(0), LaneKind::gradient_down);
  bool landed = false;
  std::thread issuing([&] {
    stream.launch([&] { landed = true; });
    stream.record(test.run.end_event(ActionId(0)));
    test.run.set_issued(ActionId(0));
  });
  test.worker.wait_for_all(test.run, ActionId(2));
  CHECK(landed);
  issuing.join();
}

TEST_CASE("an action of a host lane waits for another host lane") {
  Working test;
  std::thread summing([&] { test.hosts.finish(LaneKind::accumulate, 1); });
  test.worker.wait_for_all(test.run, ActionId(3));
  CHECK(test.hosts.is_done(LaneKind::accumulate, 1));
  summing.join();
}

TEST_CASE("a host lane runs its actions one after another, and wakes their waiters") {
  Working test;
  auto const before = RunClock::now();
  test.worker.run(test.run, ActionId(2));
  CHECK(test.hosts.is_done(LaneKind::optimizer, 1));
  CHECK_FALSE(test.hosts.is_done(LaneKind::optimizer, 2));
  test.worker.run(test.run, ActionId(3));
  CHECK(test.hosts.is_done(LaneKind::optimizer, 2));
  CHECK(test.work.done() == std::vector{ActionId(2), ActionId(3)});
  auto const& first = test.run.host_times(ActionId(2));
  auto const& second = test.run.host_times(ActionId(3));
  CHECK(before <= first.start);
  CHECK(first.start <= first.end);
  CHECK(first.end <= second.start);
}

TEST_CASE("an action that throws is not done, and its error names the action") {
  Working test;
  test.work.hook = [](ActionId) { throw Error(Errc::unsupported, "not this one"); };
  auto const error = error_of([&] { test.worker.run(test.run, ActionId(2)); });
  CHECK(error.code() == Errc::unsupported);
  CHECK(error.message() == test.program.label(ActionId(2)) + ": not this one");
  CHECK_FALSE(test.hosts.is_done(LaneKind::optimizer, 1));
}

TEST_CASE("abandoning work throws nothing") {
  Working test;
  test.worker.abandon(test.run, ActionId(3));
  CHECK(test.work.abandoned() == std::vector{ActionId(3)});
}

}  // namespace host_lane_worker_test
