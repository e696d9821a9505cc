// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/hosts/group_end.hpp>

#include <roundpipe/core/error.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace group_end_test {

using namespace roundpipe;
using test::error_of;

TEST_CASE("the first rank that ends a group says why") {
  GroupEnd end;
  CHECK_FALSE(end.is_set());
  end.rethrow();
  CHECK(end.set(2, "no memory"));
  CHECK_FALSE(end.set(0, "too late"));
  CHECK(end.is_set());
  auto const error = error_of([&] { end.rethrow(); });
  CHECK(error.code() == Errc::aborted);
  CHECK(error.message() == "rank 2 has ended the group: no memory");
}

TEST_CASE("of threads that end a group at once, one does") {
  GroupEnd end;
  std::atomic<int> first = 0;
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < 8; ++rank) {
    ranks.emplace_back([&, rank] { first += end.set(rank, "at once") ? 1 : 0; });
  }
  for (auto& rank : ranks) {
    rank.join();
  }
  CHECK(first == 1);
}

}  // namespace group_end_test
