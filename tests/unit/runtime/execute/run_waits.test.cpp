// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/run_waits.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <support/hand_made_graph.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace run_waits_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// An upload and an accumulation, and a compute action that waits for both.
struct ThreeActions {
  HostBackend backend;
  GraphProgram program{graph_of({Made(ActionKind::upload_activation, LaneKind::activation_up, 0),
                                 Made(ActionKind::accumulate_gradient, LaneKind::accumulate),
                                 Made(ActionKind::forward, LaneKind::compute, 0).after({1, 0})},
                                GraphRole::call,
                                1)};
  CallData data;
  GraphRun<HostBackend> earlier{backend, program, data};
  GraphRun<HostBackend> run{backend, program, data};

  ThreeActions() {
    earlier.begin(0, {});
    run.begin(1, {});
    run.set_host_base(LaneKind::accumulate, 7);
  }
};

using HostWait = std::pair<LaneKind, std::uint64_t>;

}  // namespace

TEST_CASE(
    "an action waits for actions of its run and of earlier ones, on devices and on the host") {
  ThreeActions three;
  three.run.set_issued(ActionId(0));
  three.earlier.set_issued(ActionId(2));
  three.run.add_external(ActionId(2), {&three.earlier, 0, ActionId(2), LaneKind::compute, 0});
  three.run.add_external(ActionId(2), {nullptr, 0, ActionId(0), LaneKind::optimizer, 5});
  std::vector<HostEvent*> events;
  std::vector<HostWait> hosts;
  for_each_wait(
      three.run,
      ActionId(2),
      [&](HostEvent& event) { events.push_back(&event); },
      [&](LaneKind lane, std::uint64_t sequence) { hosts.emplace_back(lane, sequence); });
  CHECK(events ==
        std::vector{&three.run.end_event(ActionId(0)), &three.earlier.end_event(ActionId(2))});
  CHECK(hosts == std::vector<HostWait>{{LaneKind::accumulate, 8}, {LaneKind::optimizer, 5}});
  three.earlier.retire();  // nothing waits for it any more
}

TEST_CASE("an action does not wait for a run that has left its slot") {
  ThreeActions three;
  three.run.add_external(ActionId(0), {&three.earlier, 0, ActionId(2), LaneKind::compute, 0});
  three.earlier.set_issued(ActionId(2));
  three.earlier.retire();
  for (int repeat = 0; repeat < 2; ++repeat) {
    for_each_wait(
        three.run,
        ActionId(0),
        [](HostEvent&) { FAIL_CHECK("an event"); },
        [](LaneKind, std::uint64_t) { FAIL_CHECK("a lane of the host"); });
    three.earlier.begin(2, {});  // the slot's next one
    three.earlier.set_issued(ActionId(2));
  }
}

TEST_CASE("the event of a device is not used before its action is issued") {
  for (int repeat = 0; repeat < 10; ++repeat) {
    ThreeActions three;
    std::atomic<bool> waits = false;
    bool issued = false;
    std::thread waiting([&] {
      for_each_wait(
          three.run,
          ActionId(2),
          [&](HostEvent&) { issued = three.run.is_issued(ActionId(0)); },
          [&](LaneKind, std::uint64_t) {  // the first wait
            waits = true;
            waits.notify_all();
          });
    });
    waits.wait(false);
    three.run.set_issued(ActionId(0));
    waiting.join();
    CHECK(issued);
  }
}

TEST_CASE("an action without waits does not wait") {
  ThreeActions three;
  for_each_wait(
      three.run,
      ActionId(0),
      [](HostEvent&) { FAIL_CHECK("an event"); },
      [](LaneKind, std::uint64_t) { FAIL_CHECK("a lane of the host"); });
}

}  // namespace run_waits_test
