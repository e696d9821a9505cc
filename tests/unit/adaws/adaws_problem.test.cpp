// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/adaws/adaws_problem.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace adaws_problem_test {

using namespace roundpipe;
using test::error_of;

namespace {

/// Three layers; the link carries 10 bytes a second up and 5 down.
AdawsProblem three_layers() {
  AdawsProblem problem;
  problem.costs = {{.forward_s = 3, .backward_s = 7, .recompute_s = 9, .replay_s = {4}},
                   {.forward_s = 2, .backward_s = 5},
                   {.forward_s = 1, .backward_s = 2}};
  problem.bytes = {{100, 50, 20, 30, 0}, {200, 40, 10, 0, 0}, {300, 60, 0, 70, 0}};
  problem.device.upload_bytes_per_second = 10;
  problem.device.download_bytes_per_second = 5;
  return problem;
}

}  // namespace

TEST_CASE("the times of a layer are its costs, and its bytes at the rates of the link") {
  auto const problem = three_layers();
  auto const times = adaws_times(problem, 0);
  CHECK(times.forward_s == 3);
  CHECK(times.backward_s == 7);
  CHECK(times.parameter_s == 10);
  CHECK(times.gradient_s == 10);
  auto unlimited = problem;
  unlimited.device.upload_bytes_per_second = 0;
  CHECK(adaws_times(unlimited, 0).parameter_s == 0);
}

TEST_CASE("a round goes forward to the last layer, which runs both ways, and back") {
  auto const windows = adaws_windows(three_layers());
  REQUIRE(windows.size() == 5);
  auto const check = [&](std::size_t i,
                         std::size_t layer,
                         StageKind kind,
                         std::vector<double> const& unsaved,
                         std::vector<double> const& saved) {
    CAPTURE(i);
    auto const& window = windows[i];
    CHECK(window.layer == layer);
    CHECK(window.kind == kind);
    CHECK(window.has_gradients() == (kind != StageKind::forward));
    for (auto const& [share, expected] : {std::pair(0, unsaved), std::pair(1, saved)}) {
      CHECK(std::vector{window.compute.at(share), window.up.at(share), window.down.at(share)} ==
            expected);
    }
  };
  // Compute, activations up, activations down. Layer 0 saves 30 bytes, 3 s up and 6 s down; its
  // boundary takes 2 s up and 4 s down, that of layer 1 half of this.
  check(0, 0, StageKind::forward, {3, 0, 4}, {3, 0, 10});
  check(1, 1, StageKind::forward, {2, 2, 2}, {2, 2, 2});
  check(2, 2, StageKind::fused, {3, 1, 2}, {3, 1, 2});
  check(3, 1, StageKind::backward, {5, 3, 4}, {5, 3, 4});
  check(4, 0, StageKind::backward, {11, 2, 0}, {7, 5, 0});
  CHECK(windows[1].parameter_s == 20);
  CHECK(windows[1].gradient_s == 0);
  CHECK(windows[3].parameter_s == 20);
  CHECK(windows[3].gradient_s == 8);
}

TEST_CASE("figures that do not belong together are refused") {
  auto const code = [](auto const& change) {
    auto problem = three_layers();
    change(problem);
    return error_of([&] { (void)adaws_windows(problem); }).code();
  };
  CHECK(code([](AdawsProblem& p) { p.costs.pop_back(); }) == Errc::invalid_argument);
  CHECK(code([](AdawsProblem& p) {
          p.costs.resize(1);
          p.bytes.resize(1);
        }) == Errc::invalid_argument);
  CHECK(code([](AdawsProblem& p) { p.sequences = 0; }) == Errc::invalid_argument);
  CHECK(code([](AdawsProblem& p) { p.costs[1].forward_s = -1; }) == Errc::invalid_argument);
  CHECK(code([](AdawsProblem& p) {
          p.device.upload_bytes_per_second = std::numeric_limits<double>::infinity();
        }) == Errc::invalid_argument);
  CHECK_FALSE(code([](AdawsProblem&) {}));
}

TEST_CASE("a configuration is a line in the words of the paper") {
  CHECK(to_string(AdawsConfiguration{2, 8, 3, 2, 4, 0.25}) ==
        "2 rounds of 8 chunks, R_param 3, R_act 2, R_grad 4, A_save 0.250");
  CHECK(to_string(AdawsConfiguration{1, 1, 2, 0, 2, 0}) ==
        "1 round of 1 chunk, R_param 2, R_act 0, R_grad 2, A_save 0.000");
}

}  // namespace adaws_problem_test
