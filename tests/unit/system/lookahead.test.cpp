// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/system/lookahead.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <latch>
#include <stdexcept>
#include <thread>

namespace lookahead_test {

using roundpipe::BoundedAsync;
using roundpipe::Lookahead;

TEST_CASE("results come in order, whether threads are free or none is there") {
  for (std::size_t const threads : {0, 1, 2, 4}) {
    BoundedAsync async(threads);
    std::atomic<std::size_t> runs = 0;
    Lookahead squares(threads == 0 ? nullptr : &async, 20, [&](std::size_t i) {
      ++runs;
      return i * i;
    });
    for (std::size_t i = 0; i < 20; ++i) {
      CHECK(squares.next() == i * i);
    }
    CHECK(runs == 20);
  }
}

TEST_CASE("free threads find the next results, this one the first") {
  BoundedAsync async(3);
  std::latch begun(4);  // this thread and all of the others
  auto const here = std::this_thread::get_id();
  Lookahead ids(&async, 4, [&](std::size_t) {
    begun.arrive_and_wait();
    return std::this_thread::get_id();
  });
  CHECK(ids.next() == here);
  for (int i = 1; i < 4; ++i) {
    CHECK(ids.next() != here);
  }
}

TEST_CASE("without free threads, nothing runs that nobody asks for") {
  for (std::size_t const threads : {1, 2}) {
    BoundedAsync async(threads);
    std::latch done(1);
    auto const first = async.if_free([&] { done.wait(); });
    CHECK(first.has_value() == (threads > 1));
    auto const second = async.if_free([&] { done.wait(); });
    CHECK(second.has_value() == (threads > 1));
    std::size_t runs = 0;
    {
      Lookahead numbers(&async, 3, [&](std::size_t i) {
        ++runs;
        return i;
      });
      CHECK(numbers.next() == 0);
      CHECK(runs == 1);
    }
    CHECK(runs == 1);
    done.count_down();
  }
}

TEST_CASE("what the function throws, it throws in its turn") {
  BoundedAsync async(2);
  Lookahead numbers(&async, 6, [](std::size_t i) {
    if (i % 2 == 1) {
      throw std::runtime_error("odd");
    }
    return i;
  });
  for (std::size_t i = 0; i < 6; i += 2) {
    CHECK(numbers.next() == i);
    CHECK_THROWS_AS((void)numbers.next(), std::runtime_error);
  }
}

TEST_CASE("functions end before what they use") {
  BoundedAsync async(2);
  std::atomic<int> running = 0;
  {
    std::latch begun(3);
    Lookahead numbers(&async, 3, [&](std::size_t i) {
      ++running;
      begun.arrive_and_wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(5 * i));
      --running;
      return i;
    });
    CHECK(numbers.next() == 0);
  }
  CHECK(running == 0);
}

}  // namespace lookahead_test
