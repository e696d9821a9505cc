// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/model/working_set.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace working_set_test {

using namespace roundpipe;

TEST_CASE("by default the host keeps nothing but checkpoints between stages") {
  WorkingSet const none;
  CHECK(none.checkpoints() == Checkpoints::stages);
  CHECK(none.level(3, 0) == 0);
  CHECK(none.bytes(3, 0) == 0);
  CHECK(none.recomputes(3, 0));
  CHECK(none.count(3) == 0);
  CHECK(none.most_bytes(3) == 0);
}

TEST_CASE("a save level is set for a layer and a micro-batch") {
  WorkingSet set({{0}, {0, 256, 1000}, {0, 512}}, 3);
  CHECK(set.checkpoints() == Checkpoints::layers);
  CHECK_FALSE(set.recomputes(0, 0));  // it saves nothing
  set.set_level(1, 0, 1);
  set.set_level(1, 2, 2);
  CHECK(set.level(1, 0) == 1);
  CHECK(set.level(1, 1) == 0);
  CHECK(set.level(1, 2) == 2);
  CHECK(set.bytes(1, 0) == 256);
  CHECK(set.bytes(1, 1) == 0);
  CHECK(set.bytes(1, 2) == 1000);
  CHECK(set.recomputes(1, 0));
  CHECK(set.recomputes(1, 1));
  CHECK_FALSE(set.recomputes(1, 2));
  CHECK(set.count(1) == 2);
  CHECK(set.most_bytes(1) == 1000);
  CHECK(set.count(2) == 0);
  auto const without = set.without_saves();
  CHECK(without.checkpoints() == Checkpoints::layers);
  CHECK(without.level(1, 2) == 0);
}

TEST_CASE("the levels of a layer are known at once, and copies have their own") {
  auto const levels_of = [](WorkingSet const& set) {
    std::vector<std::size_t> levels;
    set.for_each_level(1, [&](std::size_t level) { levels.push_back(level); });
    return levels;
  };
  using Levels = std::vector<std::size_t>;
  CHECK(levels_of(WorkingSet(Checkpoints::layers)) == Levels{0});
  WorkingSet set({{0}, {0, 256, 1000}}, 2);
  CHECK(levels_of(set) == Levels{0});
  set.set_level(1, 0, 2);
  CHECK(levels_of(set) == Levels{0, 2});
  auto copy = set;
  copy.set_level(1, 1, 1);
  CHECK(levels_of(copy) == Levels{1, 2});
  CHECK(levels_of(set) == Levels{0, 2});
  CHECK(set.level(1, 1) == 0);
  copy.set_level(1, 0, 1);
  CHECK(levels_of(copy) == Levels{1});
  CHECK(copy.count(1) == 2);
  CHECK(copy.bytes_of(1, 2) == 1000);
  CHECK(copy.recomputes_from(1, 1));
  CHECK_FALSE(copy.recomputes_from(1, 2));
}

TEST_CASE("a round may keep something else") {
  WorkingSet first({{0}, {0, 256, 1000}}, 2);
  first.set_level(1, 1, 2);
  WorkingSet set({{0}, {0, 256, 1000}}, 2);
  set.set_level(1, 0, 1);
  CHECK(set.of_round(0).level(1, 0) == 1);
  set.set_round(0, first);
  CHECK(set.of_round(0).level(1, 0) == 0);
  CHECK(set.of_round(0).level(1, 1) == 2);
  CHECK(set.of_round(1).level(1, 0) == 1);
  CHECK(set.of_round(2).level(1, 1) == 0);
  CHECK(set.most_bytes(1) == 1000);
  CHECK_FALSE(set.overlaps_rounds());
  set.set_overlaps_rounds(true);
  auto const without = set.without_saves();
  CHECK(without.overlaps_rounds());
  CHECK(without.most_bytes(1) == 0);
}

TEST_CASE("there must be such a layer, micro-batch and level") {
  WorkingSet set({{0}, {0, 256}}, 2);
  for (auto const& [layer, micro_batch, level] :
       {std::array<std::size_t, 3>{2, 0, 0}, {1, 2, 0}, {1, 0, 2}, {0, 0, 1}}) {
    CHECK(test::error_of([&] { set.set_level(layer, micro_batch, level); }).code() ==
          Errc::invalid_argument);
  }
}

}  // namespace working_set_test
