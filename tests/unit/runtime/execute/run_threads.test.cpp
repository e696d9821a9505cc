// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/run_threads.hpp>

#include <support/error_of.hpp>
#include <support/hand_made_graph.hpp>
#include <support/logged_work.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <exception>
#include <string>
#include <vector>

namespace run_threads_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A download, then a step.
GraphProgram two_actions() {
  return GraphProgram(graph_of({Made(ActionKind::download_gradients, LaneKind::gradient_down, 0),
                                Made(ActionKind::optimizer_step, LaneKind::optimizer).after({0})}));
}

struct Running {
  HostBackend backend{{.devices = 2}};
  LoggedWork work;
  GraphProgram program = two_actions();
  CallData data;
  RunThreads<HostBackend> threads{backend, work, work.host_lanes(), 2, {}};
  GraphRun<HostBackend>& run = threads.make_run(program, data);

  void hand() {
    run.begin(0, {.devices = 2});
    run.set_host_base(LaneKind::optimizer, 0);
    threads.hand(run);
  }
};

}  // namespace

TEST_CASE("threads finish the work that they received before they end") {
  Running test;
  test.hand();
  CHECK(test.work.done().empty());  // nothing has started
  test.threads.start();
  test.threads.join();
  CHECK(test.work.done() == std::vector{ActionId(0), ActionId(1)});
  CHECK(test.threads.hosts().is_done(LaneKind::optimizer, 1));
  test.threads.rethrow();
}

TEST_CASE("parameters go up while the thread that issues the rest is held up") {
  Running test;
  GraphProgram const program(
      graph_of({Made(ActionKind::forward, LaneKind::compute, 0),
                Made(ActionKind::upload_parameters, LaneKind::parameter_up, 0)}));
  auto& run = test.threads.make_run(program, test.data);
  std::atomic<bool> copied = false;
  test.work.hook = [&](ActionId id) {
    if (id == ActionId(0)) {
      copied.wait(false);
    } else {
      copied = true;
      copied.notify_all();
    }
  };
  run.begin(0, {.devices = 2});
  test.threads.hand(run);
  test.threads.start();
  test.threads.join();
  run.end_event(ActionId(0)).wait();  // all is issued, and devices may still work
  run.end_event(ActionId(1)).wait();
  CHECK(test.work.done().size() == 2);
  test.threads.rethrow();
}

TEST_CASE("the first error wins, and work that has not begun is dropped") {
  Running test;
  CHECK_FALSE(test.threads.succeeds([] { throw Error(Errc::unsupported, "first"); }));
  CHECK(test.work.interruptions() == 3);  // each lane's work
  test.threads.fail(std::make_exception_ptr(Error(Errc::aborted, "second")));
  CHECK(test.work.interruptions() == 3);
  test.hand();
  test.threads.start();
  test.threads.join();
  CHECK(test.work.done().empty());
  auto const error = error_of([&] { test.threads.rethrow(); });
  CHECK(error.code() == Errc::unsupported);
  CHECK(error.message() == "first");
}

TEST_CASE("a program with actions on a host lane without work is refused") {
  Running test;
  auto const own = host_lane(host_lane_count);
  GraphProgram const program(graph_of({Made(ActionKind::gradient_norm, own)}));
  auto const error = error_of([&] { test.threads.make_run(program, test.data); });
  CHECK(error.code() == Errc::unsupported);
  CHECK(error.message().find(name_of(own)) != std::string::npos);
}

}  // namespace run_threads_test
