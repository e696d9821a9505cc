// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/automatic.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace automatic_test {
namespace {

using namespace roundpipe;
using namespace roundpipe::test;

using Cut = std::tuple<std::int64_t, std::size_t, std::size_t>;

std::vector<Cut> cuts(BatchShape batch, BatchCut const& wanted = {}) {
  std::vector<Cut> result;
  for (auto const& of_size : detail::batch_cuts(batch, wanted)) {
    for (auto const& cut : of_size) {
      result.push_back({cut.rows, cut.micro_batches_per_round, cut.rounds});
    }
  }
  return result;
}

PipelineOptions options(Bytes device_memory) {
  PipelineOptions result;
  result.device_memory = device_memory;
  result.host_memory = 64_MiB;
  return result;
}

AutomaticChoice choose(PipelineOptions const& with,
                       BatchCut const& wanted = {},
                       std::size_t threads = 1) {
  HostBackendOptions machine;
  machine.devices = 2;
  HostBackend backend(machine);
  return automatic(toy_model({.dense = 3}), AdamW{}, backend, with, {8, 3}, wanted, {}, threads);
}

}  // namespace

TEST_CASE("a batch is cut evenly, larger micro-batches and fewer rounds first") {
  CHECK(cuts({4, 10}) ==
        std::vector<Cut>{{4, 1, 1}, {2, 2, 1}, {2, 1, 2}, {1, 4, 1}, {1, 2, 2}, {1, 1, 4}});
  CHECK(cuts({4, 16384}).front() == Cut{2, 2, 1});
  CHECK(cuts({3, 1 << 20}) == std::vector<Cut>{{1, 3, 1}, {1, 1, 3}});
}

TEST_CASE("what is pinned stays") {
  CHECK(cuts({4, 10}, {.rows = 2}) == std::vector<Cut>{{2, 2, 1}, {2, 1, 2}});
  CHECK(cuts({4, 16384}, {.rows = 4}) == std::vector<Cut>{{4, 1, 1}});
  CHECK(cuts({4, 10}, {.rounds = 2}) == std::vector<Cut>{{2, 1, 2}, {1, 2, 2}});
  CHECK(cuts({4, 10}, {.micro_batches_per_round = 4}) == std::vector<Cut>{{1, 4, 1}});
  CHECK(error_of([] { (void)cuts({4, 10}, {.rows = 3}); }).code() == Errc::invalid_argument);
}

TEST_CASE("the cut with the least forecast, or nearly so, is chosen, and fills the options in") {
  auto const choice = choose(options(1_MiB));
  REQUIRE(choice.tried.size() > 1);
  for (auto const& other : choice.tried) {
    auto const slack = other.cut.rows == choice.chosen.cut.rows ? detail::least_gain_of_rounds : 0;
    CHECK(choice.chosen.seconds * (1 - slack) <= other.seconds);
  }
  auto const& cut = choice.chosen.cut;
  CHECK(choice.options.capacity == BatchShape{cut.rows, 3});
  CHECK(choice.options.micro_batches_per_round == cut.micro_batches_per_round);
  CHECK(choice.options.rounds == cut.rounds);
  CHECK(cut.rows * static_cast<std::int64_t>(cut.micro_batches_per_round * cut.rounds) == 8);
  CHECK(choice.options.device_memory == 1_MiB);
  REQUIRE(choice.plan.has_value());
  CHECK(choice.plan->model.capacity == choice.options.capacity);
  CHECK(choice.plan->stages.partition.size() == choice.chosen.stages);
  REQUIRE(choice.options.known_costs.has_value());
  auto const facts = describe(toy_model({.dense = 3}), choice.options.capacity);
  HostBackend const device(HostBackendOptions{});
  auto const estimate = CostModel::estimate(facts, device.device_properties(DeviceId(0)));
  CHECK(choice.options.known_costs->layers()[1].forward_s == estimate.layers()[1].forward_s);
  auto const line = to_string(choice);
  CHECK(line.find(std::to_string(choice.tried.size()) + " tried, next: ") != std::string::npos);
}

TEST_CASE(
    "a cut has rounds of as many micro-batches as are to be offloaded, or as have save levels") {
  auto with = options(1_MiB);
  with.offloaded_micro_batches = 4;
  auto const choice = choose(with);
  for (auto const& planned : choice.tried) {
    CHECK(planned.cut.micro_batches_per_round >= 4);
  }
  with.offloaded_micro_batches = 9;  // of eight rows
  CHECK(error_of([&] { (void)choose(with); }).code() == Errc::invalid_argument);
  with.offloaded_micro_batches.reset();
  with.save_levels = {{}, {1, 0, 1, 0}};
  for (auto const& planned : choose(with).tried) {
    CHECK(planned.cut.micro_batches_per_round == 4);
  }
  with.levels_of_rounds[1] = {{}, {0, 1, 0, 0}};
  for (auto const& planned : choose(with).tried) {
    CHECK(planned.cut.rounds == 2);
  }
  with.levels_of_rounds[8];
  CHECK(error_of([&] { (void)choose(with); }).code() == Errc::invalid_argument);
  with.levels_of_rounds.clear();
  with.save_levels = {{}, {1, 0, 1}};
  CHECK(error_of([&] { (void)choose(with); }).code() == Errc::invalid_argument);
}

TEST_CASE("figures of devices are planned for as a backend with these figures is") {
  struct Figures {
    [[nodiscard]] std::size_t device_count() const { return 2; }
    [[nodiscard]] DeviceProperties device_properties(DeviceId) const { return properties; }
    DeviceProperties properties;
  };
  HostBackend const device(HostBackendOptions{});
  Figures figures{device.device_properties(DeviceId(0))};
  auto const model = toy_model({.dense = 3});
  auto with = options(1_MiB);
  auto const planned = automatic(model, AdamW{}, figures, with, {8, 3});
  auto const run = choose(with);
  REQUIRE(planned.tried.size() == run.tried.size());
  for (std::size_t i = 0; i < run.tried.size(); ++i) {
    CHECK(planned.tried[i].seconds == run.tried[i].seconds);
  }
  with.costs = CostSource::measured;  // what is not there cannot be measured
  CHECK(error_of([&] { (void)automatic(model, AdamW{}, figures, with, {8, 3}); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("a forecast of the caller's decides") {
  auto with = options(1_MiB);
  with.forecast = [](ActionGraph const& call, auto const&, auto const&, auto const&) {
    std::size_t forwards = 0;
    for (auto const& action : call.actions) {
      forwards += action.kind == ActionKind::forward ? 1 : 0;
    }
    return 1.0 / static_cast<double>(1 + forwards);  // most micro-batches
  };
  auto const choice = choose(with);
  auto const most = std::ranges::max_element(choice.tried, {}, [](PlannedCut const& planned) {
    return planned.cut.micro_batches_per_round * planned.cut.rounds;
  });
  CHECK(choice.chosen.cut.rows == most->cut.rows);
}

TEST_CASE("the search goes on past one cut that is worse, but not past two in a row") {
  std::size_t threads = 1;
  // Seconds for 1, 2, 4 and 8 micro-batches in a call, or for as many rounds of one size.
  auto const choice_with = [&](std::map<std::size_t, double> const& seconds, bool by_rounds) {
    auto with = options(1_MiB);
    with.forecast = [=](ActionGraph const& call, auto const&, auto const&, auto const&) {
      std::size_t micro_batches = 0;
      for (auto const& action : call.actions) {
        micro_batches = std::max(micro_batches, 1 + action.micro_batch.index());
      }
      auto const rounds = 1 + call.actions.back().round.index();
      return seconds.at(by_rounds ? rounds : rounds * micro_batches);
    };
    return choose(with, by_rounds ? BatchCut{.rows = 1} : BatchCut{.rounds = 1}, threads);
  };
  for (; threads < 4; threads += 2) {
    std::map<std::size_t, double> const one_worse{{1, 2.0}, {2, 2.1}, {4, 1.9}, {8, 2.2}};
    CHECK(choice_with(one_worse, false).chosen.cut.rows == 2);
    CHECK(choice_with(one_worse, true).chosen.cut.rounds == 4);
    std::map<std::size_t, double> const two_worse{{1, 2.0}, {2, 2.1}, {4, 2.1}, {8, 1.9}};
    CHECK(choice_with(two_worse, false).tried.size() == 3);
    CHECK(choice_with(two_worse, true).tried.size() == 3);
  }
}

TEST_CASE("more rounds of the same micro-batches must be faster by a margin") {
  // Each doubling of the rounds gains a share.
  auto const rounds_with = [](double gain, BatchCut const& wanted) {
    auto with = options(1_MiB);
    with.forecast = [gain](ActionGraph const& call, auto const&, auto const&, auto const&) {
      auto const rounds = 1 + call.actions.back().round.index();
      return 1 - gain * std::log2(static_cast<double>(rounds));
    };
    auto const choice = choose(with, wanted);
    CHECK(choice.tried.size() == 4);
    return choice.chosen.cut.rounds;
  };
  CHECK(rounds_with(0.001, {.rows = 1}) == 1);
  CHECK(rounds_with(0.002, {.rows = 1}) == 8);  // as much as the margin over one round
  CHECK(rounds_with(0.004, {.rows = 1}) == 4);  // four beat one, eight do not beat four
  CHECK(rounds_with(0.006, {.rows = 1}) == 8);
  // Of different sizes, the faster one is taken however little it gains.
  CHECK(rounds_with(0.001, {.micro_batches_per_round = 1}) == 8);
}

TEST_CASE("cuts that do not fit are left out, and when none fits the error says what is missing") {
  auto const refusal = [](Bytes bytes, BatchCut const& wanted) -> std::string {
    try {
      (void)choose(options(bytes), wanted);
      return {};
    } catch (Error const& error) {
      CHECK(error.code() == Errc::over_budget);
      return error.message();
    }
  };
  Bytes too_small = 0;
  Bytes least = 1_MiB;
  while (least - too_small > tensor_alignment_bytes) {
    auto const middle = too_small + (least - too_small) / 2;
    (refusal(middle, {.rows = 1}).empty() ? least : too_small) = middle;
  }
  CHECK_FALSE(refusal(least, {.rows = 8}).empty());
  CHECK(choose(options(least)).chosen.cut.rows < 8);
  CHECK(refusal(too_small, {}).find("smallest budget that works") != std::string::npos);
}

}  // namespace automatic_test
