// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/system/worker_pool.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace worker_pool_test {

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

TEST_CASE("an exception of any part reaches the caller, and the pool keeps working") {
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

TEST_CASE("shares cover an array in order, and differ by at most one grain") {
  for (std::size_t const size : {0, 1, 63, 64, 65, 1000, 6400, 100'000}) {
    for (std::size_t const grain : {1, 16, 64, 4096}) {
      for (std::size_t const workers : {1, 2, 3, 7, 64}) {
        std::size_t at = 0;
        std::size_t least = size;
        std::size_t most = 0;
        for (std::size_t i = 0; i < workers; ++i) {
          auto const [begin, end] = shard_of(size, grain, i, workers);
          REQUIRE(begin == at);
          REQUIRE(begin <= end);
          REQUIRE((begin % grain == 0 || begin == size));
          at = end;
          auto const grains = (end - begin + grain - 1) / grain;
          least = std::min(least, grains);
          most = std::max(most, grains);
        }
        CHECK(at == size);
        CHECK(most <= least + 1);
      }
    }
  }
}

TEST_CASE("a worker always gets the same share, and every worker has its own thread") {
  WorkerPool pool(4);
  CHECK(pool.size() == 4);
  std::mutex mutex;
  std::set<std::pair<std::size_t, std::thread::id>> seen;
  for (int repeat = 0; repeat < 50; ++repeat) {
    pool.for_each_part(4096, 64, [&](std::size_t begin, std::size_t) {
      std::lock_guard const lock(mutex);
      seen.emplace(begin, std::this_thread::get_id());
    });
  }
  CHECK(seen.size() == 4);
  CHECK(seen.begin()->second == std::this_thread::get_id());  // the caller takes the first share
}

TEST_CASE("jobs may follow each other quickly or slowly, and none is lost") {
  WorkerPool pool(3);
  std::vector<std::size_t> counts(3 * 64);  // written without atomics: parts do not overlap
  for (std::size_t job = 1; job <= 3000; ++job) {
    pool.for_each_part(counts.size(), 64, [&](std::size_t begin, std::size_t end) {
      for (auto i = begin; i < end; ++i) {
        ++counts[i];
      }
    });
    if (job % 1000 == 0) {
      std::this_thread::yield();
    }
  }
  CHECK(std::all_of(counts.begin(), counts.end(), [](auto n) { return n == 3000; }));
}

#ifdef __linux__
TEST_CASE("pinned workers stay on their CPUs, the caller runs anywhere") {
  auto const usable = usable_cpus();
  for (std::size_t const threads : {1, 2, 5}) {
    WorkerPool pool(threads, usable);
    CHECK(pool.size() == threads);
    auto const caller = std::this_thread::get_id();
    std::atomic<std::size_t> wrong = 0;
    pool.for_each_part(threads * 64, 64, [&](std::size_t, std::size_t) {
      auto const mine = usable_cpus().cpus;
      wrong += mine.size() != (std::this_thread::get_id() == caller ? usable.cpus.size() : 1);
    });
    CHECK(wrong == 0);
  }
}
#endif

TEST_CASE("placing the pages of an array keeps its bytes, on any machine") {
  std::vector<std::byte> memory(1 << 20, std::byte{7});
  auto const usable = usable_cpus();
  WorkerPool(2).place_shards(memory, 4, 64);
  WorkerPool(2, usable).place_shards(memory, 4, 64);
  // This pretends two nodes; the machine may lack the second. Refusals are ignored.
  auto const cpu = usable.cpus.front();
  WorkerPool const pool(2, UsableCpus{{cpu, cpu}, {0, 1}, 2});
  pool.place_shards(memory, 4, 64);
  pool.place_shards({}, 4, 64);
  CHECK(std::all_of(memory.begin(), memory.end(), [](auto b) { return b == std::byte{7}; }));
}

}  // namespace worker_pool_test
