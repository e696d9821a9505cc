// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/system/on_own_thread.hpp>

#include <doctest/doctest.h>

#include <memory>
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

TEST_CASE("results and errors come back from the thread") {
  CHECK(*on_own_thread([] { return std::make_unique<int>(7); }) == 7);
  int number = 1;
  on_own_thread([&]() -> int& { return number; }) = 2;
  CHECK(number == 2);
  CHECK_THROWS_AS(on_own_thread([] { throw std::out_of_range("there"); }), std::out_of_range);
}

}  // namespace on_own_thread_test
