// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/system/cpu_plan.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace cpu_plan_test {

using namespace roundpipe;

namespace {

using Cpus = std::vector<std::size_t>;

/// CPUs 10, 11, ...; \p threads of them can run all the time.
UsableCpus usable(std::size_t count, std::size_t threads) {
  UsableCpus result{{}, Cpus(count, 0), threads};
  for (std::size_t i = 0; i < count; ++i) {
    result.cpus.push_back(10 + i);
  }
  return result;
}

}  // namespace

TEST_CASE("issuing threads have their own CPUs, and the optimizer gets the others") {
  auto const plan = plan_cpus(usable(6, 6), 2, 0);
  CHECK(plan.optimizer_threads == 4);
  CHECK(plan.optimizer.cpus == Cpus{10, 11, 12, 13});
  CHECK(plan.issuing == Cpus{14, 15});
}

TEST_CASE("with too few CPUs nothing is pinned") {
  auto const plan = plan_cpus(usable(3, 3), 2, 0);
  CHECK(plan.optimizer_threads == 1);
  CHECK(plan.optimizer.cpus.empty());
  CHECK(plan.issuing.empty());
  CHECK(plan_cpus(usable(1, 1), 4, 0).optimizer_threads == 1);
}

TEST_CASE("a quota limits the threads, not the machine's CPUs, and then nothing is pinned") {
  auto const plan = plan_cpus(usable(64, 8), 2, 0);
  CHECK(plan.optimizer_threads == 6);
  CHECK(plan.optimizer.cpus.empty());
  CHECK(plan.issuing.empty());
}

TEST_CASE("a requested number of threads is used, and nothing is pinned") {
  auto const plan = plan_cpus(usable(6, 6), 2, 9);
  CHECK(plan.optimizer_threads == 9);
  CHECK(plan.optimizer.cpus.empty());
}

}  // namespace cpu_plan_test
