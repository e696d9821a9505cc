// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/run_meters.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace run_meters_test {

using namespace roundpipe;

namespace {

/// A graph of one action on the compute lane of device 0.
ActionGraph one_forward() {
  ActionGraph graph;
  graph.devices = 1;
  Action action;
  action.kind = ActionKind::forward;
  action.lane = {LaneKind::compute, DeviceId(0)};
  graph.actions.push_back(action);
  return graph;
}

std::vector<TimelineEntry> ran(std::size_t run, double start_s, double end_s) {
  TimelineEntry entry;
  entry.graph = run;
  entry.id = ActionId(0);
  entry.lane = {LaneKind::compute, DeviceId(0)};
  entry.start_s = start_s;
  entry.end_s = end_s;
  return {entry};
}

}  // namespace

TEST_CASE("shares of time cover training runs, the timeline covers the latest run of all") {
  HostBackend backend;
  GraphProgram const training(one_forward());
  GraphProgram const other(one_forward());
  CallData call;
  GraphRun<HostBackend> call_run(backend, training, call);
  GraphRun<HostBackend> other_run(backend, other, call);
  RunMeters meters(1, 2);
  meters.add(call_run, ran(0, 0, 1), training);
  meters.add(other_run, ran(1, 1, 50), training);
  meters.add(call_run, ran(2, 50, 52), training);
  Report report;
  meters.fill(report);
  CHECK(report.training_s == doctest::Approx(3));
  CHECK(report.device_busy.front() == doctest::Approx(1));
  auto const timeline = meters.timeline();
  CHECK(timeline.devices == 1);
  REQUIRE(timeline.entries.size() == 2);
  CHECK(timeline.entries.front().graph == 1);
}

TEST_CASE("excluded training runs do not count, later ones do") {
  HostBackend backend;
  GraphProgram const training(one_forward());
  CallData call;
  GraphRun<HostBackend> run(backend, training, call);
  RunMeters meters(1, 0);
  meters.add(run, ran(0, 0, 1), training);
  meters.leave_out(2);
  meters.add(run, ran(1, 1, 3), training);
  meters.add(run, ran(2, 3, 7), training);
  Report report;
  meters.fill(report);
  CHECK(report.training_s == doctest::Approx(4));
  CHECK(meters.timeline().entries.empty());
}

TEST_CASE("training runs can be excluded after they were counted") {
  HostBackend backend;
  GraphProgram const training(one_forward());
  CallData call;
  GraphRun<HostBackend> run(backend, training, call);
  RunMeters meters(1, 0);
  meters.add(run, ran(0, 0, 1), training);
  meters.leave_out(1);
  Report nothing;
  meters.fill(nothing);
  CHECK(nothing.training_s == 0);
  meters.add(run, ran(1, 1, 3), training);
  Report report;
  meters.fill(report);
  CHECK(report.training_s == doctest::Approx(2));
  CHECK(report.device_busy.front() == doctest::Approx(1));
}

TEST_CASE("idle time before a run belongs to whom of the earlier runs it waits for") {
  HostBackend backend;
  GraphProgram const training(one_forward());
  CallData call;
  GraphRun<HostBackend> run(backend, training, call);
  GraphRun<HostBackend> earlier(backend, training, call);
  auto const bubbles_of = [&](RunState* waited_for) {
    RunMeters meters(1, 0);
    meters.add(earlier, ran(0, 0, 1), training);
    run.begin(1, {.devices = 1});
    run.add_external(ActionId(0), {waited_for, 0, ActionId(0)});
    meters.add(run, ran(1, 3, 4), training);
    Report report;
    meters.fill(report);
    return report.bubbles;
  };
  CHECK(bubbles_of(nullptr)[BubbleCause::optimizer_stall] == doctest::Approx(2));
  CHECK(bubbles_of(&earlier)[BubbleCause::memory_stall] == doctest::Approx(2));
}

TEST_CASE("after a restart training runs count from their new number on") {
  HostBackend backend;
  GraphProgram const training(one_forward());
  CallData call;
  GraphRun<HostBackend> run(backend, training, call);
  RunMeters meters(1, 0);
  meters.add(run, ran(0, 0, 1), training);
  meters.restart_at(50);
  meters.add(run, ran(1, 1, 3), training);
  Report report;
  meters.fill(report);
  CHECK(report.training_s == doctest::Approx(2));
  meters.leave_out(51);
  meters.add(run, ran(2, 3, 7), training);
  meters.fill(report);
  CHECK(report.training_s == doctest::Approx(4));
}

}  // namespace run_meters_test
