// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/system/start_thread.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/system/on_own_thread.hpp>
#include <roundpipe/system/worker_pool.hpp>
#include <support/error_of.hpp>
#include <support/no_threads.hpp>

#include <doctest/doctest.h>

#include <string>
#include <system_error>
#include <thread>

namespace start_thread_test {

namespace {

using namespace roundpipe;
using test::error_of;
using test::NoThreads;

void check_named(Error const& error, std::string const& purpose) {
  CHECK(error.code() == std::errc::resource_unavailable_try_again);
  CHECK(error.message() == "the system starts no thread for " + purpose +
                               ": is there a limit on threads or on memory?");
}

}  // namespace

TEST_CASE("a thread runs what it is given") {
  bool ran = false;
  start_thread("a test", [&] { ran = true; }).join();
  CHECK(ran);
}

TEST_CASE("where the system starts no threads, an error names what wanted one") {
  HostBackend backend{{.devices = 2}};
  auto stream = backend.make_stream(DeviceId(0), LaneKind::compute);
  {
    NoThreads const none;
    check_named(error_of([] { (void)start_thread("a test", [] {}); }), "a test");
    check_named(error_of([] { detail::on_own_thread([] {}); }), "work on a device");
    check_named(error_of([] { WorkerPool(3); }), "a worker");
    check_named(error_of([&] { (void)backend.make_stream(DeviceId(1), LaneKind::parameter_up); }),
                "a parameter up stream of device 1");
  }
  stream.synchronize();  // what there was still works
  WorkerPool pool(3);
  CHECK(pool.size() == 3);
}

}  // namespace start_thread_test
