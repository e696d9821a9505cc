// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/backend/host_status.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>

namespace host_status_test {

namespace {

using namespace roundpipe;
using namespace roundpipe::detail;
using namespace std::chrono_literals;

/// Stops \p status as work does that throws \p thrown.
template <class T>
void fail(HostStatus& status, T const& thrown, char const* label = nullptr) {
  try {
    throw thrown;
  } catch (...) {
    status.fail(DeviceId{1}, LaneKind::parameter_up, label);
  }
}

void expect(HostStatus const& status, Errc code, char const* message) {
  auto const error = test::error_of([&] { status.throw_if_stopped(); });
  CHECK(error.code() == code);
  CHECK(error.message() == message);
}

}  // namespace

TEST_CASE("a stop keeps its first cause, and a failure names its work") {
  HostStatus aborted;
  aborted.abort();
  fail(aborted, std::runtime_error("late"));
  expect(aborted, Errc::aborted, "the host backend was aborted");
  HostStatus failed;
  fail(failed, std::runtime_error("early"), "layer 3");
  fail(failed, Error(Errc::not_finite, "late"));
  expect(failed, Errc::device_fault, "layer 3, device 1: early");
  HostStatus known;
  fail(known, Error(Errc::not_finite, "NaN"));
  expect(known, Errc::not_finite, "work on the parameter up lane, device 1: NaN");
  HostStatus other;
  fail(other, 42, "fill");
  expect(other, Errc::device_fault, "fill, device 1: an exception that is not a std::exception");
}

TEST_CASE("a status is idle when no work is pending") {
  HostStatus status;
  status.add_pending();
  status.add_pending();
  status.remove_pending();
  CHECK_FALSE(status.idle());
  status.remove_pending();
  CHECK(status.idle());
}

TEST_CASE("a wait ends when its condition holds, or by a stop unless it goes through stops") {
  auto const status = std::make_shared<HostStatus>();
  HostMonitor const monitor(status);
  int value = 0;
  auto const set = [&](int to) {
    auto const lock = monitor.lock();
    value = to;
    monitor.notify();
  };
  auto const wait = [&](int wanted) {
    auto lock = monitor.lock();
    return monitor.wait(lock, [&] { return value >= wanted; });
  };
  auto one = std::async(std::launch::async, wait, 1);
  auto three = std::async(std::launch::async, wait, 3);
  auto through = std::async(std::launch::async, [&] {
    auto lock = monitor.lock();
    monitor.wait_through_stop(lock, [&] { return value >= 2; });
    return value;
  });
  set(1);
  CHECK(one.get());
  CHECK(three.wait_for(5ms) == std::future_status::timeout);
  status->abort();
  CHECK_FALSE(three.get());
  set(2);
  CHECK(through.get() == 2);
  CHECK(wait(2));
}

TEST_CASE("a sleep ends at its time or by a stop, and says which") {
  auto const status = std::make_shared<HostStatus>();
  HostMonitor const monitor(status);
  auto const soon = HostClock::now() + 2ms;
  CHECK(monitor.sleep_until(soon));
  CHECK(HostClock::now() >= soon);
  auto asleep = std::async(std::launch::async, [&] { return monitor.sleep_until(soon + 1h); });
  CHECK(asleep.wait_for(5ms) == std::future_status::timeout);
  status->abort();
  CHECK_FALSE(asleep.get());
}

}  // namespace host_status_test
