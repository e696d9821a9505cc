// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/system/bounded_async.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace bounded_async_test {

using roundpipe::BoundedAsync;

TEST_CASE("at most so many functions run at once, and as many do") {
  for (std::size_t const threads : {2, 3}) {
    BoundedAsync async(threads);
    CHECK(async.runs_aside());
    std::atomic<std::size_t> running = 0;
    std::atomic<std::size_t> most = 0;
    std::vector<std::future<std::size_t>> results;
    for (std::size_t i = 0; i < 12; ++i) {
      results.push_back(async([&, i] {
        auto const now = ++running;
        for (auto seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        --running;
        return i;
      }));
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      CHECK(results[i].get() == i);
    }
    CHECK(most == threads);
  }
}

TEST_CASE("a function that throws makes room for others") {
  BoundedAsync async(2);
  std::vector<std::future<int>> results;
  for (int i = 0; i < 6; ++i) {
    results.push_back(async([i]() -> int {
      if (i < 4) {
        throw std::runtime_error("no");
      }
      return i;
    }));
  }
  for (int i = 0; i < 4; ++i) {
    CHECK_THROWS_AS(results[static_cast<std::size_t>(i)].get(), std::runtime_error);
  }
  CHECK(results[4].get() == 4);
  CHECK(results[5].get() == 5);
}

TEST_CASE("a function that takes a free thread leaves it free again") {
  BoundedAsync async(2);
  CHECK(async.if_free([] { return 1; })->get() == 1);
  std::optional<std::future<void>> first;
  std::optional<std::future<void>> third;
  std::promise<void> end;
  auto const wait = [ended = end.get_future().share()] { ended.wait(); };
  first = async.if_free(wait);
  auto second = async.if_free([]() -> int { throw std::runtime_error("no"); });
  REQUIRE(first);
  REQUIRE(second);
  CHECK_THROWS_AS(second->get(), std::runtime_error);
  third = async.if_free(wait);
  REQUIRE(third);
  CHECK_FALSE(async.if_free(wait));
  end.set_value();
  first->get();
  third->get();
  CHECK_FALSE(BoundedAsync(1).if_free(wait));
}

TEST_CASE("with one thread a function runs when its result is asked for, if it is") {
  for (std::size_t const threads : {0, 1}) {
    BoundedAsync async(threads);
    CHECK_FALSE(async.runs_aside());
    auto const here = std::this_thread::get_id();
    int runs = 0;
    auto const run = [&] {
      ++runs;
      return std::this_thread::get_id() == here;
    };
    {
      auto const never = async(run);
      auto result = async(run);
      CHECK(runs == 0);
      CHECK(result.get());
      CHECK(runs == 1);
    }
    CHECK(runs == 1);
  }
}

}  // namespace bounded_async_test
