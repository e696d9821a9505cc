// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/backend/host_event.hpp>

#include <roundpipe/backend/host_stream.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <utility>
#include <vector>

namespace host_event_test {

namespace {

using namespace roundpipe;
using namespace roundpipe::detail;

void until_clock_moves() {
  for (auto const start = HostClock::now(); HostClock::now() == start;) {
  }
}

}  // namespace

TEST_CASE("records complete in any order, and each ends the waits for itself alone") {
  std::array<std::uint64_t, 3> order{1, 2, 3};
  do {
    auto const status = std::make_shared<HostStatus>();
    HostEventState state(status, DeviceId{0});
    std::atomic<int> completed = 0;
    std::vector<std::future<int>> waits;  // each returns how many records were complete by then
    for (std::uint64_t const record : {1U, 2U, 3U}) {
      CHECK(state.issue() == record);
      waits.push_back(std::async(std::launch::async, [&, record] {
        state.wait(record);
        return completed.load();
      }));
    }
    std::vector<int> expected(waits.size());
    for (auto const record : order) {
      expected[record - 1] = ++completed;
      state.complete(record);
      CHECK(state.latest_is_complete() == (expected[2] > 0));
      CHECK(waits[record - 1].wait_for(std::chrono::seconds(10)) == std::future_status::ready);
    }
    status->abort();  // after a failed check, some still wait
    for (std::size_t i = 0; i < waits.size(); ++i) {
      CHECK(waits[i].get() == expected[i]);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("a stop ends plain waits, but not those that go through a stop") {
  auto const status = std::make_shared<HostStatus>();
  HostEventState state(status, DeviceId{0});
  auto const record = state.issue();
  auto const wait = std::async(std::launch::async, [&] { state.wait_through_stop(record); });
  status->abort();
  state.wait(record);
  CHECK(wait.wait_for(std::chrono::milliseconds(5)) == std::future_status::timeout);
  state.complete(record);
  CHECK(wait.wait_for(std::chrono::seconds(10)) == std::future_status::ready);
}

TEST_CASE("the time of an event is when its latest record completed, and unknown before that") {
  HostEventState state(nullptr, DeviceId{0});
  auto const code = [&] { return test::error_of([&] { (void)state.time(); }).code(); };
  CHECK(code() == Errc::invalid_argument);  // no record
  auto const slow = state.issue();
  auto const before = HostClock::now();
  state.complete(state.issue());
  auto const time = state.time();
  CHECK(before <= time);
  CHECK(time <= HostClock::now());
  until_clock_moves();
  state.complete(slow);
  CHECK(state.time() == time);
  (void)state.issue();
  CHECK(code() == Errc::invalid_argument);
}

TEST_CASE("recording an event again moves its time, and moving the event does not") {
  HostStream stream;
  HostEvent first;
  HostEvent second;
  stream.record(first);
  until_clock_moves();
  stream.record(second);
  until_clock_moves();
  HostEvent const moved(std::move(second));
  CHECK(moved.seconds_since(first) > 0);
  stream.record(first);
  CHECK(moved.seconds_since(first) < 0);
}

}  // namespace host_event_test
