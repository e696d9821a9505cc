// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/system/on_own_thread.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <cstddef>
#include <stdexcept>
#include <thread>

namespace on_own_thread_test {

using roundpipe::detail::on_own_thread;

TEST_CASE("the work on the new thread is over when the call returns") {
  auto const caller = std::this_thread::get_id();
  std::thread::id runner;
  on_own_thread([&] { runner = std::this_thread::get_id(); });
  CHECK(runner != std::thread::id{});
  CHECK(runner != caller);
}

TEST_CASE("errors come back from the thread, and leave what the work has done") {
  int number = 1;
  CHECK_THROWS_AS(on_own_thread([&] {
                    number = 2;
                    throw std::out_of_range("there");
                  }),
                  std::out_of_range);
  CHECK(number == 2);
}

TEST_CASE("several threads work at once, and the first error comes back when all are done") {
  using roundpipe::detail::on_own_threads;
  std::barrier all(3);
  std::atomic<int> sum = 0;
  CHECK_THROWS_WITH(on_own_threads(3,
                                   [&](std::size_t i) {
                                     all.arrive_and_wait();
                                     sum += static_cast<int>(i);
                                     if (i > 0) {
                                       throw std::out_of_range(i == 1 ? "one" : "two");
                                     }
                                   }),
                    "one");
  CHECK(sum == 3);
  on_own_threads(0, [](std::size_t) { FAIL("nobody"); });
}

}  // namespace on_own_thread_test
