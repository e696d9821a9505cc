// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/run_timeline.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <support/hand_made_graph.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

namespace run_timeline_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

GraphProgram two_actions() {
  auto graph = graph_of({Made(ActionKind::backward, LaneKind::compute, 0).in_slot(4, 1),
                         Made(ActionKind::accumulate_gradient, LaneKind::accumulate)});
  graph.actions[0].stage = StageId(3);
  graph.actions[0].round = RoundId(2);
  graph.actions[0].layer = LayerId(5);
  graph.actions[1].bytes = 96;
  return GraphProgram(std::move(graph));
}

}  // namespace

TEST_CASE("the entry of an action says what the action was, on which device, and when") {
  HostBackend backend{{.devices = 2}};
  std::vector<HostStream> streams;
  RunTimeline<HostBackend> timeline;
  for (std::size_t d = 0; d < 2; ++d) {
    streams.push_back(backend.make_stream(DeviceId(d), LaneKind::compute));
    timeline.add_device(backend.make_event(DeviceId(d)), streams.back());
  }
  auto const before = RunClock::now();
  timeline.begin();
  auto const after = RunClock::now();

  auto const program = two_actions();
  CallData data;
  GraphRun<HostBackend> run(backend, program, data);
  run.begin(7, {.first_device = 1, .devices = 2, .iteration = 1});
  streams[1].record(run.start_event(ActionId(0)));
  streams[1].record(run.end_event(ActionId(0)));
  streams[1].synchronize();
  run.host_times(ActionId(1)) = {after, after + std::chrono::milliseconds(250)};

  for (int repeat = 0; repeat < 2; ++repeat) {  // earlier entries disappear
    auto const& entries = timeline.entries(run);
    REQUIRE(entries.size() == 2);
    auto const& compute = entries[0];
    CHECK(compute.graph == 7);
    CHECK(compute.id == ActionId(0));
    CHECK(compute.kind == ActionKind::backward);
    CHECK(compute.lane == Lane{LaneKind::compute, DeviceId(1)});
    CHECK(compute.slot == SlotId(4));
    CHECK(compute.stage == StageId(3));
    CHECK(compute.round == RoundId(2));
    CHECK(compute.micro_batch == MicroBatchId(1));
    CHECK(compute.layer == LayerId(5));
    CHECK(compute.start_s >= 0);
    CHECK(compute.end_s >= compute.start_s);
    auto const& sum = entries[1];
    CHECK(sum.lane == Lane{LaneKind::accumulate, DeviceId::none()});
    CHECK(sum.block == BlockId(0));
    CHECK(sum.bytes == 96);
    CHECK(sum.start_s >= 0);
    CHECK(sum.start_s <= std::chrono::duration<double>(after - before).count());
    CHECK(sum.seconds() == doctest::Approx(0.25));
  }
}

TEST_CASE("times continue from reference to reference, even when events are recorded again") {
  HostBackend backend{{.devices = 2}};
  auto stream = backend.make_stream(DeviceId(0), LaneKind::compute);
  auto other = backend.make_stream(DeviceId(1), LaneKind::compute);
  RunTimeline<HostBackend> often(0);
  auto const before_zero = RunClock::now();
  often.add_device(backend.make_event(DeviceId(0)), stream);
  often.add_device(backend.make_event(DeviceId(1)), other);
  often.begin();
  auto const after_zero = RunClock::now();
  auto const seconds_since = [](RunClock::time_point earlier) {
    return std::chrono::duration<double>(RunClock::now() - earlier).count();
  };

  auto const program = two_actions();
  CallData data;
  GraphRun<HostBackend> run(backend, program, data);
  double last_s = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    run.begin(i, {.first_device = 0, .devices = 2, .iteration = i});
    auto const least = seconds_since(after_zero);
    stream.record(run.start_event(ActionId(0)));
    stream.launch([] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
    stream.record(run.end_event(ActionId(0)));
    stream.synchronize();
    auto const most = seconds_since(before_zero);
    auto const& entry = often.entries(run).front();
    CHECK(entry.start_s >= last_s);
    CHECK(entry.seconds() >= 0.002);
    CHECK(entry.start_s >= least - 1e-6);
    CHECK(entry.end_s <= most + 1e-6);
    last_s = entry.end_s;
    run.finish();
  }
}

}  // namespace run_timeline_test
