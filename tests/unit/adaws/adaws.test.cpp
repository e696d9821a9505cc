// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/adaws/adaws.hpp>

#include <roundpipe/adaws/adaws_walk.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace adaws_test {

using namespace roundpipe;
using test::error_of;

namespace {

/// A decoder of 8e9 parameters: 32 layers and the head, in micro-batches of 8 x 2048 tokens. Times,
/// link and layers are those measured on an H200, the head's time forward and backward together.
/// Workspace is left out.
AdawsProblem eight_billion() {
  AdawsProblem problem;
  problem.costs.assign(32, {.forward_s = 11.6e-3, .backward_s = 23.9e-3});
  problem.bytes.assign(32, {436'000'000, 436'000'000, 134'217'728, 1'400'000'000, 0});
  problem.costs.push_back({.forward_s = 25.9e-3, .backward_s = 51.8e-3});
  problem.bytes.push_back({1'050'673'152, 1'050'673'152, 0, 0, 0});
  problem.device.upload_bytes_per_second = 48e9;
  problem.device.download_bytes_per_second = 49e9;
  problem.device.memory_bytes = 24_GiB;
  problem.host_bytes = 1000_GiB;
  problem.sequences = 8;
  return problem;
}

/// What a window of W = \p window needs, with \p save_entries.
Bytes device_bytes(AdawsProblem const& problem, std::size_t save_entries, std::size_t window) {
  Bytes saved = 0;
  Bytes last_saved = 0;
  Bytes computing = 0;
  Bytes boundary = 0;
  Bytes layer = 0;
  for (auto const& bytes : problem.bytes) {
    saved = std::max(saved, last_saved);
    last_saved = align_up(bytes.saved_bytes);
    computing = std::max(computing, last_saved + align_up(bytes.workspace_bytes));
    boundary = std::max(boundary, align_up(bytes.boundary_bytes));
    layer = std::max(layer, align_up(bytes.parameter_bytes) + align_up(bytes.gradient_bytes));
  }
  return problem.held_bytes + computing + 6 * boundary + save_entries * saved + window * layer;
}

/// What the host holds of a round of \p chunks.
Bytes host_bytes(AdawsProblem const& problem, std::size_t chunks, double saved_share) {
  double bytes = 0;
  for (std::size_t i = 0; i + 1 < problem.bytes.size(); ++i) {
    bytes += static_cast<double>(align_up(problem.bytes[i].boundary_bytes)) +
             saved_share * static_cast<double>(align_up(problem.bytes[i].saved_bytes));
  }
  return static_cast<Bytes>(static_cast<double>(chunks) * bytes);
}

bool stalls(AdawsProblem const& problem, AdawsConfiguration configuration, double saved_share) {
  configuration.saved_share = saved_share;
  configuration.rounds = 300;  // so that what adds up over rounds is seen
  return walk_adaws(problem, configuration).stalls();
}

/// Tenths of seconds on the link, and device memory for a window of two to five layers.
AdawsProblem random_problem(std::mt19937& random, std::size_t window) {
  auto const number = [&](int least, int most) {
    return static_cast<std::size_t>(std::uniform_int_distribution<int>(least, most)(random));
  };
  AdawsProblem problem;
  auto const uneven = number(0, 1);
  auto const typical = number(5, 30);
  for (auto layers = number(2, 6); layers > 0; --layers) {
    auto const seconds = uneven * number(0, 20) + typical;
    problem.costs.push_back(
        {.forward_s = 0.1 * static_cast<double>(seconds), .backward_s = 0.2 * double(seconds)});
    problem.bytes.push_back({256 * (number(0, 30) + uneven * number(0, 60)),
                             256 * number(0, 60),
                             256 * number(0, 6),
                             256 * number(0, 120),
                             256 * number(0, 9)});
  }
  problem.device.upload_bytes_per_second = 2560 * double(number(1, 3));
  problem.device.download_bytes_per_second = 2560 * double(number(1, 3));
  problem.device.memory_bytes = device_bytes(problem, 2, window);
  problem.host_bytes = 1_GiB;
  problem.sequences = number(1, 12);
  return problem;
}

}  // namespace

TEST_CASE("a model of 8e9 parameters saves three tenths at a context of 2048") {
  auto problem = eight_billion();
  problem.device.memory_bytes = device_bytes(problem, 2, 2);
  auto const solution = solve_adaws(problem);
  CHECK(solution.window == 2);
  CHECK(solution.layer_bytes == 2 * 1'050'673'152U);
  CHECK(solution.reserved_bytes == 3 * align_up(1'400'000'000) + 6 * 134'217'728);
  // In 11.6 ms 568.4 MB come down, 134.2 MB of them a boundary: of 1.4 GB, 434.2 MB.
  CHECK(solution.configuration.saved_share == doctest::Approx(0.31013).epsilon(1e-4));
  CHECK(solution.binding() == AdawsLimit::forward_download);
  CHECK(solution.bound(AdawsLimit::forward_download).least_sequences == 1);
  // A boundary goes up in 2.796 ms, which leaves 8.804 of a forward; the head's parameters, behind
  // layer 31, take 21.889 ms.
  CHECK(solution.bound(AdawsLimit::forward_upload).least_sequences ==
        doctest::Approx(21.889 / 8.804).epsilon(1e-3));
  // Of 8 backwards of 35.5 ms the boundaries leave 29.908 ms each, and T_param is 9.083 ms. All of
  // the saves would take 29.167 ms, and spare 11.6 ms.
  CHECK(solution.bound(AdawsLimit::backward_upload).saved_share ==
        doctest::Approx((8 * 29.908 - 9.083) / (8 * (29.167 + 11.6))).epsilon(1e-3));
  CHECK(solution.bound(AdawsLimit::backward_upload).least_sequences == 1);
  CHECK(solution.bound(AdawsLimit::backward_download).least_sequences == 1);
  CHECK(to_string(solution) ==
        "1 round of 8 chunks, R_param 2, R_act 2, R_grad 2, A_save 0.310; W 2, chunks at least 3; "
        "A_save is limited by downloads in forward windows");
  CHECK_FALSE(stalls(problem, solution.configuration, solution.configuration.saved_share));
  CHECK(stalls(problem, solution.configuration, 0.32));
}

TEST_CASE("a larger window spreads the copies of a large layer over the windows before it") {
  auto problem = eight_billion();
  problem.device.memory_bytes = device_bytes(problem, 2, 4);
  auto const solution = solve_adaws(problem);
  CHECK(solution.window == 4);
  // The head's parameters and those of the two layers before it have five windows.
  CHECK(solution.bound(AdawsLimit::forward_upload).least_sequences < 1.1);
  problem.sequences = 2;
  CHECK(solve_adaws(problem).configuration.chunks == 2);
  problem.device.memory_bytes = device_bytes(problem, 0, 2);
  CHECK(error_of([&] { (void)solve_adaws(problem); }).message() ==
        "uploads in forward windows, first for layer 31, stall compute in rounds of fewer than 3 "
        "sequences; the batch has 2");
}

TEST_CASE("copies that fit into a large window for a round, and not for many, are refused") {
  AdawsProblem problem;
  problem.costs.assign(3, {.forward_s = 10, .backward_s = 10});
  problem.costs.back() = {.forward_s = 5, .backward_s = 5};
  problem.bytes.assign(3, {.parameter_bytes = 10'100});
  problem.device.memory_bytes = 1_MiB;
  problem.device.upload_bytes_per_second = 1000;
  AdawsConfiguration configuration{.parameter_entries = 3, .gradient_entries = 3};
  CHECK_FALSE(walk_adaws(problem, configuration).stalls());
  CHECK(stalls(problem, configuration, 0));
  CHECK(error_of([&] { (void)solve_adaws(problem); }).message() ==
        "uploads of a round stall compute in rounds of fewer than 2 sequences; the batch has 1");
}

TEST_CASE("an unlimited link saves everything, one without time to spare nothing") {
  auto problem = eight_billion();
  problem.device.upload_bytes_per_second = 0;
  problem.device.download_bytes_per_second = 0;
  auto const unlimited = solve_adaws(problem);
  CHECK(unlimited.configuration.saved_share == 1);
  CHECK(unlimited.binding() == AdawsLimit::everything);
  CHECK(unlimited.least_sequences() == 1);
  problem.device.download_bytes_per_second = 134'217'728 / 11.6e-3;
  auto const full = solve_adaws(problem).configuration;
  CHECK(full.saved_share == doctest::Approx(0).epsilon(1e-9));
  problem.device.download_bytes_per_second *= 0.99;
  CHECK(error_of([&] { (void)solve_adaws(problem); }).message() ==
        "downloads in forward windows, first for layer 0, stall compute with any number of "
        "sequences; join layers that compute little with their neighbours");
}

TEST_CASE("the longer the context, the more is saved, up to everything") {
  auto problem = eight_billion();
  auto const share = [&](double forward_s, double backward_s) {
    for (std::size_t i = 0; i < 32; ++i) {
      problem.costs[i] = {.forward_s = forward_s, .backward_s = backward_s};
    }
    return solve_adaws(problem).configuration.saved_share;
  };
  CHECK(share(11.6e-3, 23.9e-3) == doctest::Approx(0.310).epsilon(1e-3));
  // At a context of 8192, also measured, as many tokens take longer: 512.6 MB more than a boundary.
  CHECK(share(13.2e-3, 30.5e-3) == doctest::Approx(0.366).epsilon(1e-3));
  CHECK(share(30e-3, 70e-3) == doctest::Approx(0.954).epsilon(1e-3));
  CHECK(share(32e-3, 75e-3) == 1);
}

TEST_CASE("host memory makes rounds smaller, and then saves less") {
  auto problem = eight_billion();
  problem.device.memory_bytes = device_bytes(problem, 2, 2);
  problem.host_bytes = host_bytes(problem, 4, 0.32);
  auto const half = solve_adaws(problem);
  CHECK(half.configuration.rounds == 2);
  CHECK(half.configuration.chunks == 4);
  CHECK(half.binding() == AdawsLimit::forward_download);
  problem.sequences = 7;  // rounds of 1 do not hide the copies
  problem.host_bytes = host_bytes(problem, 7, 0.2);
  auto const less = solve_adaws(problem);
  CHECK(less.configuration.chunks == 7);
  CHECK(less.configuration.saved_share == doctest::Approx(0.2).epsilon(1e-6));
  CHECK(less.binding() == AdawsLimit::host_memory);
  problem.host_bytes = host_bytes(problem, 7, 0) - 256;
  auto const error = error_of([&] { (void)solve_adaws(problem); });
  CHECK(error.code() == Errc::over_budget);
  CHECK(test::contains(error.message(), "host memory: "));
  CHECK(test::contains(error.message(), "a round of 7 sequences"));
}

TEST_CASE(
    "without room for saves beside two layers nothing is saved, without two layers nothing runs") {
  auto problem = eight_billion();
  problem.device.memory_bytes = device_bytes(problem, 2, 2) - 256;
  auto const solution = solve_adaws(problem);
  CHECK(solution.configuration.saved_share == 0);
  CHECK(solution.configuration.save_entries == 0);
  CHECK(solution.binding() == AdawsLimit::device_memory);
  CHECK(solution.window == 3);
  problem.device.memory_bytes = device_bytes(problem, 0, 2) - 256;
  auto const narrow = error_of([&] { (void)solve_adaws(problem); });
  CHECK(narrow.code() == Errc::over_budget);
  CHECK(test::contains(narrow.message(), "W = 1 layers of 1.96 GiB"));
  problem.device.memory_bytes = device_bytes(problem, 0, 0) - 256;
  auto const none = error_of([&] { (void)solve_adaws(problem); });
  CHECK(none.code() == Errc::over_budget);
  CHECK(test::contains(none.message(), "no room for one sequence"));
}

TEST_CASE("the choice is the best of all rounds and shares with which the walk does not stall") {
  std::mt19937 random(20261123);
  constexpr int steps = 32;
  std::array<std::size_t, adaws_limit_count> bound{};
  std::size_t refused = 0;
  for (int i = 0; i < 300; ++i) {
    auto const window = static_cast<std::size_t>(2 + i % 4);
    auto const problem = random_problem(random, window);
    CAPTURE(i);
    std::optional<AdawsSolution> solution;
    auto const error = error_of([&] { solution = solve_adaws(problem); });
    AdawsConfiguration tried;
    tried.parameter_entries = std::min(window, problem.bytes.size());
    tried.gradient_entries = tried.parameter_entries;
    auto best = -1;
    for (tried.chunks = 1; tried.chunks <= problem.sequences; ++tried.chunks) {
      for (int s = steps; problem.sequences % tried.chunks == 0 && s > best; --s) {
        if (!stalls(problem, tried, double(s) / steps)) {
          best = s;
        }
      }
    }
    if (!solution) {
      CHECK(error.code() == Errc::invalid_argument);
      CHECK(best == -1);
      ++refused;
      continue;
    }
    auto const& chosen = solution->configuration;
    ++bound[static_cast<std::size_t>(solution->binding())];
    CHECK(chosen.rounds * chosen.chunks == problem.sequences);
    CHECK_FALSE(stalls(problem, chosen, chosen.saved_share));
    if (chosen.saved_share + 0.02 <= 1 && chosen.save_entries > 0) {
      CHECK(stalls(problem, chosen, chosen.saved_share + 0.02));
    }
    if (chosen.save_entries > 0) {
      CHECK(double(best) / steps <= chosen.saved_share + 0.02);
      CHECK(double(best + 1) / steps > chosen.saved_share);
    }
    // The least number of sequences, as the walk finds it.
    auto fewest = chosen;
    for (fewest.chunks = 1; stalls(problem, fewest, 0);) {
      ++fewest.chunks;
    }
    CHECK(double(fewest.chunks) + 0.2 >= solution->least_sequences());
    CHECK(double(fewest.chunks) < solution->least_sequences() + 1);
  }
  CHECK(refused > 10);
  for (auto const limit :
       {AdawsLimit::everything, AdawsLimit::forward_download, AdawsLimit::backward_upload}) {
    CAPTURE(std::string(to_string(limit)));
    CHECK(bound[static_cast<std::size_t>(limit)] > 3);
  }
}

}  // namespace adaws_test
