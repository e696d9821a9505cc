// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/run_queue.hpp>

#include <doctest/doctest.h>

#include <thread>
#include <vector>

namespace run_queue_test {

using namespace roundpipe;

TEST_CASE("values come out in order, and a closed queue gives nothing once it is empty") {
  RunQueue<int> queue;
  std::vector<int> taken;
  std::thread consumer([&] {
    while (auto const value = queue.pop()) {
      taken.push_back(*value);
    }
  });
  for (int i = 0; i < 1000; ++i) {
    queue.push(i);
  }
  queue.close();
  consumer.join();
  REQUIRE(taken.size() == 1000);
  for (int i = 0; i < 1000; ++i) {
    CHECK(taken[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("a queue that closes wakes its waiters, and one that is opened again is empty") {
  RunQueue<int> queue;
  std::thread consumer([&] { CHECK_FALSE(queue.pop().has_value()); });
  queue.close();
  consumer.join();
  queue.push(1);
  queue.reopen();
  queue.push(2);
  CHECK(queue.pop() == 2);
}

}  // namespace run_queue_test
