// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/adaws/adaws_walk.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

namespace adaws_walk_test {

using namespace roundpipe;

namespace {

/// Two layers, so a round is the forward of the first, both ways of the second, and the backward
/// of the first: 10, 10 and 20 seconds, or 30 with recomputation. The link carries a byte a second.
AdawsProblem two_layers() {
  AdawsProblem problem;
  problem.costs = {{.forward_s = 10, .backward_s = 20}, {.forward_s = 4, .backward_s = 6}};
  problem.bytes.resize(2);
  problem.device.upload_bytes_per_second = 1;
  problem.device.download_bytes_per_second = 1;
  return problem;
}

}  // namespace

TEST_CASE("without copies the walk is the compute") {
  auto const problem = two_layers();
  CHECK(walk_adaws(problem, {.rounds = 3, .chunks = 4}).seconds == 3 * 4 * 40);
  CHECK_FALSE(walk_adaws(problem, {.rounds = 3, .chunks = 4}).stalls());
}

TEST_CASE("a walk without chunks or entries is refused") {
  for (auto const& configuration : {AdawsConfiguration{.chunks = 0},
                                    AdawsConfiguration{.parameter_entries = 0},
                                    AdawsConfiguration{.gradient_entries = 0}}) {
    CHECK(test::error_of([&] { (void)walk_adaws(two_layers(), configuration); }).code() ==
          Errc::invalid_argument);
  }
}

TEST_CASE("parameters have the window before their own, with two entries") {
  auto problem = two_layers();
  problem.bytes[0].parameter_bytes = 10;
  CHECK_FALSE(walk_adaws(problem, {.rounds = 5}).stalls());
  // They go up in the second window for the third, and in the third one for the next round.
  problem.bytes[0].parameter_bytes = 12;
  CHECK(walk_adaws(problem, {.rounds = 5}).stalled_s == doctest::Approx(5 * 2));
  // Another entry begins with the upload a window earlier.
  CHECK_FALSE(walk_adaws(problem, {.rounds = 5, .parameter_entries = 3}).stalls());
  // Twice the chunks, twice the window.
  CHECK_FALSE(walk_adaws(problem, {.rounds = 5, .chunks = 2}).stalls());
}

TEST_CASE("gradients have the windows before their entry is needed again") {
  auto problem = two_layers();
  problem.bytes[1].gradient_bytes = 20;  // out before the second next window with gradients
  CHECK_FALSE(walk_adaws(problem, {.rounds = 5}).stalls());
  problem.bytes[1].gradient_bytes = 33;  // three seconds more than the backward and the forward
  CHECK(walk_adaws(problem, {.rounds = 5}).stalled_s == doctest::Approx(4 * 3));
  CHECK(walk_adaws(problem, {.rounds = 5, .gradient_entries = 1}).stalled_s ==
        doctest::Approx(5 * 33));
}

TEST_CASE("saves take the link, and spare recomputation") {
  auto problem = two_layers();
  problem.bytes[0].saved_bytes = 20;
  CHECK(walk_adaws(problem, {}).seconds == 50);
  CHECK(walk_adaws(problem, {.saved_share = 0.5}).seconds == 45);
  CHECK_FALSE(walk_adaws(problem, {.saved_share = 0.5}).stalls());
  auto const all = walk_adaws(problem, {.saved_share = 1});
  CHECK(all.seconds == 50);
  CHECK(all.stalled_s == 10);             // of the forward
  problem.bytes[0].parameter_bytes = 15;  // five seconds more than in the second window
  CHECK(walk_adaws(problem, {.saved_share = 0.5}).stalled_s == 5);
}

}  // namespace adaws_walk_test
