// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/bubble/bubbles.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>

namespace bubbles_test {

using roundpipe::BubbleCause;
using roundpipe::Bubbles;

TEST_CASE("every cause of idle time has its own name") {
  std::set<std::string> names;
  for (std::size_t i = 0; i < roundpipe::bubble_cause_count; ++i) {
    names.insert(name_of(static_cast<BubbleCause>(i)));
  }
  CHECK(names.size() == roundpipe::bubble_cause_count);
  CHECK(name_of(BubbleCause::fill) == std::string("fill"));
  CHECK(name_of(BubbleCause::dispatch) == std::string("dispatch"));  // the last one
  CHECK(static_cast<std::size_t>(BubbleCause::dispatch) + 1 == roundpipe::bubble_cause_count);
}

TEST_CASE("at first there is no idle time") {
  CHECK(Bubbles{}.total() == 0);
}

TEST_CASE("seconds are kept by cause and summed over all") {
  Bubbles bubbles;
  for (std::size_t i = 0; i < roundpipe::bubble_cause_count; ++i) {
    bubbles[static_cast<BubbleCause>(i)] = static_cast<double>(1U << i);
  }
  CHECK(bubbles[BubbleCause::fill] == 1);
  CHECK(bubbles[BubbleCause::memory_stall] == 16);
  CHECK(bubbles.total() == 127);
  auto others = bubbles;
  CHECK(others == bubbles);
  others[BubbleCause::drain] += 1;
  CHECK(others != bubbles);
}

}  // namespace bubbles_test
