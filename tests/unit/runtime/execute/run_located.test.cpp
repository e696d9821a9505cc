// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/run_located.hpp>

#include <roundpipe/core/error.hpp>
#include <support/error_of.hpp>
#include <support/hand_made_graph.hpp>

#include <doctest/doctest.h>

#include <stdexcept>

namespace run_located_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

struct OneAction {
  GraphProgram program{
      graph_of({Made(ActionKind::backward, LaneKind::compute, 0)}, GraphRole::call, 1)};
  CallData data;
  RunState run{program, data};
};

}  // namespace

TEST_CASE("an error of the work names the action and the device, and keeps its code") {
  OneAction one;
  auto const error = error_of([&] {
    run_located(one.run, ActionId(0), ", device 3", [] { throw Error(Errc::over_budget, "full"); });
  });
  CHECK(error.code() == Errc::over_budget);
  CHECK(error.message() == one.program.label(ActionId(0)) + ", device 3: full");
}

TEST_CASE("an exception that is not an Error becomes a device fault") {
  OneAction one;
  auto const error = error_of(
      [&] { run_located(one.run, ActionId(0), "", [] { throw std::runtime_error("odd"); }); });
  CHECK(error.code() == Errc::device_fault);
  CHECK(error.message() == one.program.label(ActionId(0)) + ": odd");
}

TEST_CASE("what is thrown may be no exception at all") {
  OneAction one;
  auto const error =
      error_of([&] { run_located(one.run, ActionId(0), ", device 1", [] { throw 5; }); });
  CHECK(error.code() == Errc::device_fault);
  CHECK(error.message() ==
        one.program.label(ActionId(0)) + ", device 1: an exception that is not a std::exception");
}

}  // namespace run_located_test
