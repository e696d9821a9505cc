// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/device_issuer.hpp>

#include <support/error_of.hpp>
#include <support/hand_made_graph.hpp>
#include <support/logged_work.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace device_issuer_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A sum on the host, then an upload, then a compute action; and parameters after the sum.
struct Issuing {
  HostBackend backend;
  LoggedWork work;
  HostProgress<HostBackend> hosts{backend, work.lanes};
  DeviceIssuer<HostBackend> issuer{backend, work, hosts, DeviceId(0)};
  GraphProgram program{
      graph_of({Made(ActionKind::accumulate_gradient, LaneKind::accumulate),
                Made(ActionKind::upload_activation, LaneKind::activation_up, 0).after({0}),
                Made(ActionKind::forward, LaneKind::compute, 0).after({1}),
                Made(ActionKind::upload_parameters, LaneKind::parameter_up, 0).after({0})},
               GraphRole::call,
               1)};
  CallData data;
  GraphRun<HostBackend> run{backend, program, data};

  Issuing() {
    run.begin(0, {});
    run.set_host_base(LaneKind::accumulate, 0);
  }
  /// As the device's threads do, in the order of their lists.
  void issue(std::size_t action) {
    issuer.issue(run, ActionId(action));
    run.set_issued(ActionId(action));
  }
};

}  // namespace

TEST_CASE("device work runs after everything that it waits for, on other lanes and on the host") {
  Issuing test;
  test.issue(1);
  test.issue(2);
  CHECK(test.work.done().empty());  // the sum is not done yet
  CHECK_FALSE(test.run.end_event(ActionId(1)).ready());
  test.hosts.finish(LaneKind::accumulate, 1);
  test.run.end_event(ActionId(2)).wait();
  CHECK(test.work.done() == std::vector{ActionId(1), ActionId(2)});
}

TEST_CASE("the thread that issues parameters waits for the host itself") {
  Issuing test;
  std::atomic<bool> has_summed = false;
  bool summed_before = false;
  test.work.hook = [&](ActionId id) {
    if (id == ActionId(3)) {
      summed_before = has_summed;
    }
  };
  std::thread parameters([&] { test.issue(3); });
  test.issue(1);  // here only the stream waits
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  has_summed = true;
  test.hosts.finish(LaneKind::accumulate, 1);
  parameters.join();
  CHECK(summed_before);
  test.run.end_event(ActionId(3)).wait();
  test.run.end_event(ActionId(1)).wait();
}

TEST_CASE("the events of an action enclose its work") {
  Issuing test;
  test.hosts.finish(LaneKind::accumulate, 1);
  test.issue(1);
  test.issue(2);
  test.run.end_event(ActionId(2)).wait();
  CHECK(test.run.end_event(ActionId(1)).seconds_since(test.run.start_event(ActionId(1))) >= 0);
  CHECK(test.run.start_event(ActionId(2)).seconds_since(test.run.end_event(ActionId(1))) >= 0);
}

TEST_CASE("an exception during issue names the action and the device") {
  Issuing test;
  test.work.hook = [](ActionId) { throw Error(Errc::unsupported, "not this one"); };
  auto const error = error_of([&] { test.issue(1); });
  CHECK(error.code() == Errc::unsupported);
  CHECK(error.message() == test.program.label(ActionId(1)) + ", device 0: not this one");
}

TEST_CASE("an exception while the work runs names the action") {
  Issuing test;
  test.work.device_hook = [](ActionId id) {
    require(id != ActionId(2), Errc::unsupported, "not this one");
  };
  test.hosts.finish(LaneKind::accumulate, 1);
  test.issue(1);
  test.issue(2);
  auto const error = error_of([&] { test.issuer.stream(LaneKind::compute).synchronize(); });
  CHECK(error.message().find(test.program.label(ActionId(2))) != std::string::npos);
}

}  // namespace device_issuer_test
