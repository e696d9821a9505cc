// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/worker_pool.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <vector>

using namespace roundpipe;

TEST_CASE("parts cover every element once, cut at multiples of the grain") {
  for (std::size_t const threads : {0, 1, 2, 5}) {
    WorkerPool pool(threads);
    for (std::size_t const size : {0, 1, 15, 16, 17, 100, 1000}) {
      std::vector<std::atomic<int>> seen(size);
      std::atomic<bool> aligned = true;
      pool.for_each_part(size, 16, [&](std::size_t begin, std::size_t end) {
        aligned = aligned && begin % 16 == 0 && (end % 16 == 0 || end == size);
        for (auto i = begin; i < end; ++i) {
          ++seen[i];
        }
      });
      CHECK(aligned);
      CHECK(std::all_of(seen.begin(), seen.end(), [](auto const& n) { return n == 1; }));
    }
  }
}

TEST_CASE("an exception of any part reaches the caller, and the pool goes on") {
  WorkerPool pool(3);
  for (std::size_t const bad : {0, 40, 80}) {
    CHECK_THROWS_AS(pool.for_each_part(96,
                                       16,
                                       [&](std::size_t begin, std::size_t end) {
                                         if (begin <= bad && bad < end) {
                                           throw std::runtime_error("part");
                                         }
                                       }),
                    std::runtime_error);
  }
  std::atomic<std::size_t> sum = 0;
  pool.for_each_part(96, 16, [&](std::size_t begin, std::size_t end) { sum += end - begin; });
  CHECK(sum == 96);
}
