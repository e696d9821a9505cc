// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/automatic_choice.hpp>

#include <roundpipe/core/batch_shape.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace automatic_choice_test {

namespace {

using namespace roundpipe;
using detail::CutProgress;

/// A cut of a batch of eight rows.
BatchCut cut_of(std::int64_t rows, std::size_t rounds) {
  return {rows, static_cast<std::size_t>(8 / rows) / rounds, rounds};
}

/// Adds cuts of one size: their seconds, from one round on.
void add(CutProgress& progress, std::int64_t rows, std::initializer_list<double> seconds) {
  std::size_t rounds = 1;
  for (auto const each : seconds) {
    (void)progress.add({cut_of(rows, rounds), each, 1});
    rounds *= 2;
  }
}

}  // namespace

TEST_CASE("a cut knows all up to the first one of the next larger size") {
  std::vector<std::vector<BatchCut>> const sizes{
      {cut_of(4, 1), cut_of(4, 2)}, {cut_of(2, 1), cut_of(2, 2), cut_of(2, 4)}, {cut_of(1, 1)}};
  using Ends = std::vector<std::pair<std::size_t, std::size_t>>;  // of the size, and what it knows
  Ends ends;
  for (auto const& step : detail::cut_steps(sizes)) {
    ends.emplace_back(step.end_of_size, step.knows);
  }
  CHECK(ends == Ends{{2, 0}, {2, 1}, {5, 1}, {5, 1}, {5, 1}, {6, 3}});
}

TEST_CASE("the fastest cut is the choice; with more rounds it must be faster by half a percent") {
  CutProgress progress;
  CHECK(progress.add({cut_of(4, 1), 2, 1}));
  CHECK_FALSE(progress.add({cut_of(4, 2), 1.995, 1}));
  CHECK(progress.add({cut_of(4, 2), 1.98, 1}));
  progress.end_size();
  CHECK(progress.add({cut_of(2, 1), 1.979, 1}));
  CHECK(progress.chosen().cut.rows == 2);
  CHECK(progress.chosen().seconds == 1.979);
  CHECK(progress.tried().size() == 4);
}

TEST_CASE("a size is left when two cuts in a row are worse than one with fewer rounds") {
  CutProgress progress;
  CHECK(progress.sure_cuts() == 3);
  add(progress, 1, {2, 2.1});
  CHECK(progress.sure_cuts() == 1);
  CHECK_FALSE(progress.leaves_size());
  add(progress, 1, {1.9});
  CHECK(progress.sure_cuts() == 2);
  add(progress, 1, {1.91, 1.92});
  CHECK(progress.leaves_size());
  progress.end_size();
  CHECK_FALSE(progress.leaves_size());
  CHECK(progress.sure_cuts() == 3);
  add(progress, 2, {3, 3.1});  // worse than the size before, but only one is than one of this size
  CHECK_FALSE(progress.leaves_size());
}

TEST_CASE("a cut that is slower than the choice counts as worse if it is only a little better") {
  CutProgress progress;
  add(progress, 4, {2});
  progress.end_size();
  add(progress, 2, {3, 2.99, 2.98});  // half a percent, over two steps
  CHECK_FALSE(progress.leaves_size());
  add(progress, 2, {2.975, 2.97});
  CHECK(progress.leaves_size());
  progress.end_size();
  add(progress, 1, {1.99, 1.989, 1.988, 1.987});  // no choice but the first, yet none is slower
  CHECK_FALSE(progress.leaves_size());
  CHECK(progress.chosen().seconds == 1.99);
}

TEST_CASE("behind two sizes that are no better than a larger one, one cut of a size is enough") {
  CutProgress progress;
  add(progress, 8, {2});
  CHECK(progress.sure_cuts_behind(8) == 3);
  progress.end_size();
  add(progress, 4, {2.1});
  CHECK_FALSE(progress.leaves_size());
  CHECK(progress.sure_cuts_behind(4) == 3);  // of two rows, which may be as bad
  progress.end_size();
  progress.end_size();  // nothing of it was planned
  CHECK(progress.sure_cuts() == 3);
  CHECK(progress.sure_cuts_behind(2) == 1);
  add(progress, 2, {2.1});
  CHECK_FALSE(progress.leaves_size());
  progress.end_size();
  for (int size = 0; size < 2; ++size) {
    CHECK(progress.sure_cuts() == 1);
    CHECK(progress.sure_cuts_behind(1) == 1);
    CHECK_FALSE(progress.leaves_size());
    add(progress, 1, {2});
    CHECK(progress.leaves_size());
    progress.end_size();
  }
  add(progress, 1, {1.9});  // the choice, so its size is tried as the first ones
  CHECK_FALSE(progress.leaves_size());
  CHECK(progress.sure_cuts() == 2);
  CHECK(progress.sure_cuts_behind(1) == 3);
  add(progress, 1, {1.95, 1.95});
  CHECK(progress.leaves_size());
}

}  // namespace automatic_choice_test
