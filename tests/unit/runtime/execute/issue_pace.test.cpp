// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/issue_pace.hpp>

#include <roundpipe/backend/host_backend.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <thread>

namespace issue_pace_test {

namespace {

using namespace roundpipe;

struct Paced : HostBackend {
  using HostBackend::HostBackend;
  static constexpr std::size_t compute_actions_ahead = 8;
};

}  // namespace

TEST_CASE("an issuing thread sleeps while too many issued actions are unfinished") {
  Paced backend;
  auto stream = backend.make_stream(DeviceId(0), LaneKind::compute);
  IssuePace<Paced> pace(backend, DeviceId(0));
  std::atomic<bool> open = false;
  std::size_t done = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    pace.before();
    stream.launch([&open, &done] {
      open.wait(false);
      ++done;
    });
    pace.after(stream);
  }
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // who does not wait has gone on
    open = true;
    open.notify_all();
  });
  pace.before();  // returns when the first two are done
  CHECK(open);
  stream.synchronize();
  CHECK(done == 8);
  opener.join();
}

TEST_CASE("an issuing thread goes on when the earliest group is done, whatever is behind it") {
  Paced backend;
  auto stream = backend.make_stream(DeviceId(0), LaneKind::compute);
  IssuePace<Paced> pace(backend, DeviceId(0));
  std::promise<void> returned;
  auto const goes_on = returned.get_future().share();
  std::atomic<bool> is_late = false;
  for (std::size_t i = 0; i < 8; ++i) {
    pace.before();
    stream.launch([&is_late, goes_on, i] {
      if (i >= 2 && goes_on.wait_for(std::chrono::seconds(10)) == std::future_status::timeout) {
        is_late = true;
      }
    });
    pace.after(stream);
  }
  pace.before();
  CHECK_FALSE(is_late);
  returned.set_value();
  stream.synchronize();
}

TEST_CASE("without a limit of the backend nothing is held up") {
  HostBackend backend;
  auto stream = backend.make_stream(DeviceId(0), LaneKind::compute);
  IssuePace<HostBackend> pace(backend, DeviceId(0));
  std::atomic<bool> open = false;
  std::atomic<std::size_t> done = 0;
  // As many as are far beyond any limit are issued before the first can end.
  for (std::size_t i = 0; i < 100; ++i) {
    pace.before();
    stream.launch([&open, &done] {
      open.wait(false);
      ++done;
    });
    pace.after(stream);
  }
  CHECK(done == 0);
  open = true;
  open.notify_all();
  stream.synchronize();
  CHECK(done == 100);
}

}  // namespace issue_pace_test
