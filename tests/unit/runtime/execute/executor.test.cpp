// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/executor.hpp>

#include <support/error_of.hpp>
#include <support/hand_made_graph.hpp>
#include <support/logged_work.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <stdexcept>
#include <utility>
#include <vector>

namespace executor_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// On two devices: an upload, then compute, then a download to the host on the other device, then a
/// step.
ActionGraph chain() {
  auto graph =
      graph_of({Made(ActionKind::upload_activation, LaneKind::activation_up, 0),
                Made(ActionKind::backward, LaneKind::compute, 0).after({0}),
                Made(ActionKind::download_gradients, LaneKind::gradient_down, 1).after({1}),
                Made(ActionKind::optimizer_step, LaneKind::optimizer).after({2})});
  graph.advance = 1;
  return graph;
}

struct Running {
  HostBackend backend{{.devices = 2}};
  LoggedWork work;
  GraphProgram program{chain()};
  CallData data;
  Executor<HostBackend> executor{backend, work, work.host_lanes(), 2};
  GraphRun<HostBackend>* runs[2] = {&executor.make_run(program, data),
                                    &executor.make_run(program, data)};

  void post(std::size_t number) {
    auto& run = *runs[number % 2];
    executor.begin(run, 1);
    executor.post(run);
  }
};

}  // namespace

TEST_CASE("runs follow their waits, and are reported in the order in which they were posted") {
  Running test;
  std::vector<std::pair<std::size_t, DeviceId>> told;  // run, device of its first action
  test.executor.on_complete = [&](auto const& run, auto const& entries) {
    told.emplace_back(run.number(), entries.front().lane.device);
    REQUIRE(entries.size() == 4);
    for (std::size_t i = 1; i < 3; ++i) {
      CHECK(entries[i].start_s >= 0);
      CHECK(entries[i].end_s >= entries[i].start_s);
    }
  };
  for (std::size_t i = 0; i < 5; ++i) {
    test.post(i);
  }
  test.executor.synchronize();
  CHECK(test.work.done().size() == 5 * 4);
  REQUIRE(told.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(told[i].first == i);
    CHECK(told[i].second == DeviceId(i % 2));
  }
}

TEST_CASE("the actions of one run follow each other") {
  Running test;
  test.post(0);
  test.executor.wait(*test.runs[0], ActionId(3));
  CHECK(test.work.done() == std::vector{ActionId(0), ActionId(1), ActionId(2), ActionId(3)});
  test.executor.synchronize();
  CHECK_FALSE(test.runs[0]->in_flight());
}

TEST_CASE("a slot is free once its run is complete, whatever a later run has yet to issue") {
  Ring const ring{BufferKind::checkpoint, DeviceId::none(), 0};
  auto graph = graph_of({Made(ActionKind::forward, LaneKind::compute, 0).writes({ring, 0}),
                         Made(ActionKind::upload_activation, LaneKind::activation_up, 1),
                         Made(ActionKind::forward, LaneKind::compute, 1).after_users({ring, 0})});
  add_ring(graph, ring, 1, {{ActionId(0)}});
  HostBackend backend{{.devices = 2}};
  LoggedWork work;
  std::atomic<bool> first_computes = true;
  std::atomic<bool> second_issues = true;
  work.device_hook = [&](ActionId id) {
    if (id == ActionId(0)) {
      first_computes.wait(false);
    }
  };
  work.hook = [&](ActionId id) {
    if (id == ActionId(1)) {
      second_issues.wait(false);
    }
  };
  GraphProgram const program(std::move(graph));
  CallData data;
  Executor<HostBackend> executor(backend, work, work.host_lanes(), 2);
  auto& first = executor.make_run(program, data);
  auto& second = executor.make_run(program, data);
  executor.begin(second, 1);
  executor.post(second);
  executor.synchronize();
  first_computes = false;
  executor.begin(first, 2);
  executor.post(first);
  executor.wait(first, ActionId(2));
  second_issues = false;
  executor.begin(second, 3);
  executor.post(second);  // it waits for what is not computed yet
  REQUIRE(second.external(ActionId(2)).size() == 1);
  CHECK(second.external(ActionId(2)).front().number == first.number());
  first_computes = true;
  first_computes.notify_all();
  auto begun = std::async(std::launch::async, [&] { executor.begin(first, 4); });
  CHECK(begun.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  second_issues = true;
  second_issues.notify_all();
  begun.get();
  executor.post(first);
  executor.synchronize();
  CHECK(work.done().size() == 4 * 3);
}

TEST_CASE("the first error of any action stops everything and is thrown by the next calls") {
  for (std::size_t bad = 0; bad < 4; ++bad) {
    CAPTURE(bad);
    Running test;
    test.work.hook = [&](ActionId id) {
      if (id == ActionId(bad)) {
        throw std::runtime_error("injected");
      }
    };
    for (int repeat = 0; repeat < 2; ++repeat) {
      auto const error = error_of([&] {
        test.post(0);
        test.executor.synchronize();
      });
      CHECK(error.code() == Errc::device_fault);
      CHECK(error.message().starts_with(test.program.label(ActionId(bad))));
      CHECK(error.message().ends_with("injected"));
    }
    test.executor.settle();
    CHECK(test.work.done().size() <= bad);
    // The step is left out if its thread got that far, or has failed.
    CHECK(test.work.abandoned().size() <= 1);
  }
}

TEST_CASE("after an error an executor recovers, and runs what is posted then, and nothing older") {
  for (std::size_t bad = 0; bad < 4; ++bad) {
    CAPTURE(bad);
    Running test;
    bool fails = true;
    test.work.hook = [&](ActionId id) {
      if (fails && id == ActionId(bad)) {
        throw std::runtime_error("injected");
      }
    };
    auto const error = error_of([&] {
      test.post(0);
      test.executor.synchronize();
    });
    CHECK(error.code() == Errc::device_fault);
    test.executor.recover();
    fails = false;
    auto const before = test.work.done().size();
    for (int repeat = 0; repeat < 2; ++repeat) {
      test.post(0);
      test.executor.synchronize();
    }
    CHECK(test.work.done().size() == before + 2 * test.program.graph().actions.size());
  }
}

TEST_CASE("an error of the controller stops the threads, too") {
  Running test;
  test.executor.fail(std::make_exception_ptr(Error(Errc::unsupported, "enough")));
  CHECK(error_of([&] { test.executor.rethrow(); }).code() == Errc::unsupported);
  CHECK(error_of([&] { test.post(0); }).code() == Errc::unsupported);
  test.executor.settle();
  CHECK(test.work.done().empty());
}

TEST_CASE("a host lane that the library does not know runs between gradients and the step") {
  constexpr auto reduction = static_cast<ActionKind>(200);
  constexpr auto network = host_lane(host_lane_count);
  HostBackend backend{{.devices = 2}};
  LoggedWork work;
  work.lanes.push_back({network});
  GraphProgram const program(
      graph_of({Made(ActionKind::download_gradients, LaneKind::gradient_down, 0),
                Made(reduction, network).after({0}),
                Made(ActionKind::optimizer_step, LaneKind::optimizer).after({1})}));
  CallData data;
  Executor<HostBackend> executor(backend, work, work.host_lanes(), 2);
  std::vector<TimelineEntry> told;
  executor.on_complete = [&](auto const&, auto const& entries) { told = entries; };
  auto& run = executor.make_run(program, data);
  for (std::size_t number = 0; number < 3; ++number) {
    executor.begin(run, number + 1);
    executor.post(run);
  }
  executor.synchronize();
  std::vector<ActionId> expected;
  for (std::size_t number = 0; number < 3; ++number) {
    expected.insert(expected.end(), {ActionId(0), ActionId(1), ActionId(2)});
  }
  CHECK(work.done() == expected);
  REQUIRE(told.size() == 3);
  CHECK(told[1].kind == reduction);
  CHECK(told[1].lane == Lane{network, DeviceId::none()});
  CHECK(told[1].end_s <= told[2].start_s);
}

}  // namespace executor_test
