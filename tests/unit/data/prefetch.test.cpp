// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/data/prefetch.hpp>

#include <roundpipe/core/error.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace prefetch_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A number that threads wait for.
class Level {
 public:
  void raise(std::uint64_t by = 1) {
    {
      std::lock_guard const lock(mutex_);
      level_ += by;
    }
    raised_.notify_all();
  }
  void await(std::uint64_t level) {
    std::unique_lock lock(mutex_);
    raised_.wait(lock, [&] { return level_ >= level; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable raised_;
  std::uint64_t level_ = 0;
};

}  // namespace

TEST_CASE("items come in order, whatever the depth and the number of threads") {
  for (std::size_t const depth : {1, 2, 5}) {
    for (std::size_t const threads : {1, 2, 7}) {
      Prefetch<std::vector<std::uint64_t>> prefetch(
          [](std::uint64_t number, auto& item) { item.assign(100, number * number); },
          10,
          {depth, threads});
      for (std::uint64_t number = 10; number < 300; ++number) {
        CHECK(prefetch.number() == number);
        auto const& item = prefetch.next();
        CHECK(item == std::vector<std::uint64_t>(100, number * number));
      }
      CHECK(prefetch.number() == 300);
    }
  }
}

TEST_CASE("as many items as the depth are made ahead, and no more") {
  for (std::size_t const threads : {1, 3}) {
    Level made;
    std::atomic<std::uint64_t> most = 0;
    Prefetch<std::uint64_t> prefetch(
        [&](std::uint64_t number, std::uint64_t& item) {
          item = number;
          auto before = most.load();
          while (before < number && !most.compare_exchange_weak(before, number)) {
          }
          made.raise();
        },
        0,
        {.depth = 4, .threads = threads});
    for (std::uint64_t number = 0; number < 50; ++number) {
      made.await(number + 4);  // makes them without being asked
      CHECK(most < number + 4);
      CHECK(prefetch.next() == number);
    }
  }
}

TEST_CASE("an item stays as it is until the next call") {
  Level made;
  Prefetch<std::uint64_t> prefetch(
      [&](std::uint64_t number, std::uint64_t& item) {
        item = number;
        made.raise();
      },
      0,
      {.depth = 3, .threads = 2});
  for (std::uint64_t number = 0; number < 20; ++number) {
    auto const& item = prefetch.next();
    made.await(number + 4);  // all that can be made beside the item
    CHECK(item == number);
  }
}

TEST_CASE("an item that is there costs no wait, and one that is not costs one") {
  Level made;
  std::atomic<Prefetch<std::uint64_t> const*> self = nullptr;
  Prefetch<std::uint64_t> prefetch(
      [&](std::uint64_t number, std::uint64_t& item) {
        while (number == 2 && (self == nullptr || self.load()->stalls() == 0)) {
          std::this_thread::yield();  // until the caller waits for item 2
        }
        item = number;
        made.raise();
      },
      0,
      {.depth = 2, .threads = 1});
  self = &prefetch;
  made.await(2);  // the thread began item 1 once item 0 was there
  CHECK(prefetch.next() == 0);
  CHECK(prefetch.stalls() == 0);
  CHECK(prefetch.next() == 1);
  CHECK(prefetch.next() == 2);
  CHECK(prefetch.stalls() >= 1);
}

TEST_CASE("an error comes in the place of its item, behind good ones, and comes again") {
  for (std::size_t const threads : {1, 2, 5}) {
    Prefetch<std::uint64_t> prefetch(
        [](std::uint64_t number, std::uint64_t& item) {
          if (number >= 7) {
            throw std::runtime_error("item " + std::to_string(number));
          }
          item = number;
        },
        0,
        {.depth = 4, .threads = threads});
    for (std::uint64_t number = 0; number < 7; ++number) {
      CHECK(prefetch.next() == number);
    }
    for (int again = 0; again < 3; ++again) {
      CHECK_THROWS_WITH_AS((void)prefetch.next(), "item 7", std::runtime_error);
      CHECK(prefetch.number() == 7);
    }
  }
}

TEST_CASE("it ends at any time, also while items are being made and errors wait") {
  for (std::size_t const threads : {1, 4}) {
    for (std::uint64_t taken = 0; taken < 6; ++taken) {
      std::atomic<int> running = 0;
      {
        Prefetch<std::uint64_t> prefetch(
            [&](std::uint64_t number, std::uint64_t& item) {
              ++running;
              item = number;
              --running;
              if (number == 5) {
                throw std::runtime_error("five");
              }
            },
            0,
            {.depth = 3, .threads = threads});
        for (std::uint64_t number = 0; number < taken && number < 5; ++number) {
          CHECK(prefetch.next() == number);
        }
      }
      CHECK(running == 0);
    }
  }
}

TEST_CASE("a depth or a number of threads of 0 is refused") {
  auto const make = [](PrefetchOptions const& options) {
    return error_of([&] { Prefetch<int>([](std::uint64_t, int&) {}, 0, options); });
  };
  CHECK(make({.depth = 0}).code() == Errc::invalid_argument);
  CHECK(make({.threads = 0}).code() == Errc::invalid_argument);
}

}  // namespace prefetch_test
