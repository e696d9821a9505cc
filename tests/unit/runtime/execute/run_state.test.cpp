// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/run_state.hpp>

#include <support/hand_made_graph.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

namespace run_state_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// Two actions of a device, and two of a host lane that only this graph uses.
struct OneRun {
  GraphProgram program{graph_of({Made(ActionKind::upload_activation, LaneKind::activation_up, 1),
                                 Made(ActionKind::forward, LaneKind::compute, 1),
                                 Made(ActionKind::gradient_norm, host_lane(host_lane_count)),
                                 Made(ActionKind::optimizer_step, host_lane(host_lane_count))})};
  CallData data;
  RunState run{program, data};
};

}  // namespace

TEST_CASE("a run knows which devices play the devices of its graph") {
  OneRun one;
  one.run.begin(5, {.first_device = 1, .devices = 2, .iteration = 3});
  CHECK(one.run.number() == 5);
  for (std::size_t d = 0; d < 2; ++d) {
    CHECK(one.run.physical(DeviceId(d)) == DeviceId(1 - d));
    CHECK(one.run.relative(one.run.physical(DeviceId(d))) == DeviceId(d));
  }
  GraphProgram const of_three{
      graph_of({Made(ActionKind::forward, LaneKind::compute, 2)}, GraphRole::call, 3)};
  RunState run{of_three, one.data};
  run.begin(6, {.first_device = 2, .devices = 3});
  for (std::size_t d = 0; d < 3; ++d) {
    CHECK(run.physical(DeviceId(d)) == DeviceId((d + 2) % 3));
    CHECK(run.relative(DeviceId(d)) == DeviceId((d + 1) % 3));
  }
}

TEST_CASE("actions that an earlier run issued in the slot do not count") {
  OneRun one;
  one.run.begin(0, {.devices = 2});
  CHECK_FALSE(one.run.is_issued(ActionId(0)));
  one.run.set_issued(ActionId(0));
  CHECK(one.run.is_issued(ActionId(0)));
  CHECK_FALSE(one.run.is_issued(ActionId(1)));
  one.run.set_issued(ActionId(1));
  CHECK(one.run.is_issued(ActionId(1)));
  one.run.begin(1, {.devices = 2});
  CHECK_FALSE(one.run.is_issued(ActionId(0)));
}

TEST_CASE("the actions of a host lane are numbered across runs, whoever provides the lane") {
  OneRun one;
  one.run.begin(0, {.devices = 2});
  one.run.set_host_base(LaneKind::optimizer, 3);  // the program has no action there
  one.run.set_host_base(host_lane(host_lane_count), 40);
  CHECK(one.run.host_base(LaneKind::optimizer) == 3);
  CHECK(one.run.host_sequence(ActionId(2)) == 41);
  CHECK(one.run.host_sequence(ActionId(3)) == 42);
}

TEST_CASE("waits for other runs name one run of the slot") {
  OneRun one;
  OneRun earlier;
  one.run.begin(0, {.devices = 2});
  one.run.add_external(ActionId(1), {&earlier.run, 0, ActionId(0), LaneKind::activation_up, 0});
  CHECK(one.run.external(ActionId(0)).empty());
  REQUIRE(one.run.external(ActionId(1)).size() == 1);
  CHECK(one.run.external(ActionId(1)).front().run == &earlier.run);
  one.run.begin(1, {.devices = 2});
  CHECK(one.run.external(ActionId(1)).empty());
}

TEST_CASE("a pinned run keeps its slot until the last waiter lets go") {
  OneRun one;
  one.run.begin(3, {.devices = 2});
  REQUIRE(one.run.pin(3));
  REQUIRE(one.run.pin(3));
  one.run.unpin();
  std::atomic<bool> unpinned = false;
  std::thread waiter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a wait too short has ended then
    unpinned = true;
    one.run.unpin();
  });
  one.run.retire();
  CHECK(unpinned);
  waiter.join();
}

TEST_CASE("a run that has retired is not pinned, and the slot's next one is not mistaken for it") {
  OneRun one;
  CHECK_FALSE(one.run.pin(0));
  one.run.begin(3, {.devices = 2});
  CHECK_FALSE(one.run.pin(2));
  one.run.retire();
  CHECK_FALSE(one.run.pin(3));
  one.run.begin(5, {.devices = 2});
  CHECK_FALSE(one.run.pin(3));
  CHECK(one.run.pin(5));
  one.run.unpin();
  one.run.retire();  // nobody is left
}

TEST_CASE("a released run lets everybody pass") {
  OneRun one;
  one.run.begin(0, {.devices = 2});
  REQUIRE(one.run.pin(0));
  one.run.release_waiters();
  one.run.wait_issued(ActionId(1));
  one.run.retire();
  one.run.set_issued(ActionId(0));  // late
  one.run.wait_issued(ActionId(1));
  CHECK(one.run.is_issued(ActionId(1)));
}

}  // namespace run_state_test
