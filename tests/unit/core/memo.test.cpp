// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/memo.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>

namespace memo_test {

using roundpipe::Memo;

TEST_CASE("a value is made once, for its key") {
  Memo<int, std::string> memo;
  int made = 0;
  auto const text = [&](int key) -> std::string const& {
    return memo(key, [&] {
      ++made;
      return std::to_string(key);
    });
  };
  auto const& one = text(1);
  CHECK(text(2) == "2");
  CHECK(text(1) == "1");
  CHECK(&text(1) == &one);
  CHECK(made == 2);
}

TEST_CASE("a value that could not be made is made the next time") {
  Memo<int, int> memo;
  CHECK_THROWS_AS((void)memo(1, []() -> int { throw std::runtime_error("no"); }),
                  std::runtime_error);
  CHECK(memo(1, [] { return 3; }) == 3);
}

TEST_CASE("threads that ask at the same time get the one value") {
  Memo<int, int> memo;
  std::atomic<int> made = 0;
  std::array<int const*, 4> found{};
  {
    std::array<std::jthread, 4> threads;
    for (std::size_t i = 0; i < threads.size(); ++i) {
      threads[i] = std::jthread([&, i] {
        for (int key = 0; key < 100; ++key) {
          found[i] = &memo(key, [&] { return ++made; });
        }
      });
    }
  }
  CHECK(made == 100);
  for (auto const* const each : found) {
    CHECK(each == found.front());
  }
}

}  // namespace memo_test
