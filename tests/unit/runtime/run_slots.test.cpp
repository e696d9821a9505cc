// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/run_slots.hpp>

#include <support/error_of.hpp>
#include <support/logged_work.hpp>
#include <support/planned_call.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace run_slots_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

struct Running {
  PlannedCall planned;
  LoggedWork work;
  GraphProgram program{planned.plan.graph};
  Executor<HostBackend> executor{planned.backend, work, work.host_lanes(), 2};
  RunSlots<HostBackend> slots{executor, PlannedCall::options()};
};

}  // namespace

TEST_CASE("posted work counts calls and steps, and says whose weights the next call reads") {
  for (int const staleness : {0, 1}) {
    PostedWork posted;
    CHECK(posted.iteration() == 1);
    posted.add_call();
    posted.add_call();
    CHECK(posted.calls == 2);
    CHECK(posted.pending_calls == 2);
    posted.add_step(staleness);
    CHECK(posted.pending_calls == 0);
    CHECK(posted.iteration() == 2);
    CHECK(posted.visible_step == 1 - static_cast<std::uint64_t>(staleness));
  }
}

TEST_CASE("a run knows its iteration, and the weights that it reads") {
  Running test;
  auto const slot = test.slots.make(test.program, test.planned.plan.stages.train);
  CHECK(slot.data().micro_batches_per_round == 2);
  PostedWork posted;
  posted.add_call();
  posted.add_step(0);
  CallData call = slot.data();
  call.number = 9;
  test.slots.begin(slot, posted, call);
  CHECK(slot.data().number == 9);
  CHECK(slot.data().iteration == 2);
  CHECK(slot.data().version == 1);
  CHECK_FALSE(slot.runs_step(2));  // not posted yet
  test.slots.post(slot);
  CHECK(slot.runs_step(2));
  CHECK_FALSE(slot.runs_step(1));
  test.slots.wait_complete(slot);
  CHECK_FALSE(slot.runs_step(2));
  test.slots.wait_complete(slot);  // nothing is under way
}

TEST_CASE("losses are added in order, without their scale") {
  Running test;
  auto const slot = test.slots.make(test.program, test.planned.plan.stages.train);
  slot.data().losses = test.planned.call.losses;
  slot.data().shapes = test.planned.call.shapes;
  slot.data().loss_scale = 4;
  for (std::size_t m = 0; m < 2; ++m) {
    *reinterpret_cast<double*>(slot.data().losses[m].data()) = static_cast<double>(m + 1);
  }
  test.slots.begin(slot, {});
  test.slots.post(slot);
  CHECK(test.slots.wait_for_loss(slot, 5) == 2);
  test.executor.synchronize();
}

TEST_CASE("what stops the slots stops their executor") {
  Running test;
  auto const error =
      error_of([&] { test.slots.stops_with([] { throw Error(Errc::unsupported, "enough"); }); });
  CHECK(error.message() == "enough");
  CHECK(error_of([&] { test.executor.rethrow(); }).code() == Errc::unsupported);
}

}  // namespace run_slots_test
