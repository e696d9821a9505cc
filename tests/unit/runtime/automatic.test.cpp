// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/automatic.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/over_budget.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/policies.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <support/error_of.hpp>
#include <support/temporary_folder.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
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

/// Its layers load code when they first run, though less than is allowed for.
struct LoadsCode : HostBackend {
  using HostBackend::HostBackend;
  static constexpr double warm_up_seconds = 0;
  static constexpr Bytes unloaded_code_bytes = 8_MiB;
  [[nodiscard]] HostStream make_stream(DeviceId device, LaneKind kind) {
    has_run = true;
    return HostBackend::make_stream(device, kind);
  }
  [[nodiscard]] Bytes overhead_bytes(DeviceId) const { return has_run ? 6_MiB : 0; }
  bool has_run = false;
};

/// A dense layer that counts its evaluations.
struct EvaluatedDense : ToyDense {
  std::shared_ptr<std::atomic<int>> evaluations = std::make_shared<std::atomic<int>>(0);

  void forward(ForwardContext<HostStream>& ctx) const {
    *evaluations += ctx.evaluating() ? 1 : 0;
    ToyDense::forward(ctx);
  }
};

/// Of all rounds.
std::size_t micro_batches_of(ActionGraph const& call) {
  std::size_t of_round = 0;
  for (auto const& action : call.actions) {
    of_round = std::max(of_round, 1 + action.micro_batch.index());
  }
  return of_round * (1 + call.actions.back().round.index());
}

AutomaticChoice choose(PipelineOptions const& with,
                       BatchCut const& wanted = {},
                       std::size_t threads = 1) {
  HostBackendOptions machine;
  machine.devices = 2;
  HostBackend backend(machine);
  return automatic(toy_model({.dense = 3}), AdamW{}, backend, with, {8, 3}, wanted, {}, threads);
}

/// Why there is no choice.
OverBudget least_for(PipelineOptions const& with, BatchCut const& wanted = {}) {
  try {
    (void)choose(with, wanted);
  } catch (OverBudget const& lack) {
    return lack;
  }
  FAIL("there is a choice");
  return {{}, {}, 0, {}};
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
  CHECK(choice.plan->seconds == choice.chosen.seconds);
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

TEST_CASE("the search goes on past one cut that is worse, and past two only once a size") {
  std::size_t threads = 1;
  // Seconds for 1, 2, 4 and 8 micro-batches in a call, or for as many rounds of one size.
  auto const choice_with = [&](std::map<std::size_t, double> const& seconds, bool by_rounds) {
    auto with = options(1_MiB);
    with.forecast = [=](ActionGraph const& call, auto const&, auto const&, auto const&) {
      return seconds.at(by_rounds ? 1 + call.actions.back().round.index() : micro_batches_of(call));
    };
    return choose(with, by_rounds ? BatchCut{.rows = 1} : BatchCut{.rounds = 1}, threads);
  };
  for (; threads < 4; threads += 2) {
    std::map<std::size_t, double> const one_worse{{1, 2.0}, {2, 2.1}, {4, 1.9}, {8, 2.2}};
    CHECK(choice_with(one_worse, false).chosen.cut.rows == 2);
    CHECK(choice_with(one_worse, true).chosen.cut.rounds == 4);
    std::map<std::size_t, double> const two_worse{{1, 2.0}, {2, 2.1}, {4, 2.1}, {8, 1.9}};
    CHECK(choice_with(two_worse, false).chosen.cut.rows == 1);
    CHECK(choice_with(two_worse, true).tried.size() == 3);
    auto with = options(1_MiB);
    with.forecast = [](ActionGraph const& call, auto const&, auto const&, auto const&) {
      return static_cast<double>(micro_batches_of(call));
    };
    auto const falling = choose(with, {}, threads);  // of 8, 4, 2 and 1 rows
    CHECK(falling.tried.size() == 1 + 2 + 3 + 1);
    CHECK(falling.tried.back().cut.rows == 1);
  }
}

TEST_CASE("the largest, the smallest and a middle size are measured before any is planned for") {
  TemporaryFolder const folder;
  auto with = options(1_MiB);
  with.costs = CostSource::measured;
  with.cost_file = folder.path / "costs";
  HostBackend const backend(HostBackendOptions{.devices = 2});
  auto const device = backend.device_properties(DeviceId(0));
  auto const measured_sizes = [&] {
    std::vector<std::int64_t> rows{8, 4, 2, 1};
    std::erase_if(rows, [&](auto of_size) {
      auto const model = describe(toy_model({.dense = 3}), {of_size, 3});
      return !find_costs(with.cost_file, model, device, 2);
    });
    return rows;
  };
  std::map<std::size_t, std::vector<std::int64_t>> measured;  // by micro-batches
  auto sized = with;
  sized.forecast = [&](ActionGraph const& call, auto const&, auto const&, auto const&) {
    auto const micro_batches = micro_batches_of(call);
    measured.emplace(micro_batches, measured_sizes());
    return micro_batches == 2 ? 1.0 : 2.0;
  };
  CHECK(choose(sized).chosen.cut.rows == 4);
  using Rows = std::vector<std::int64_t>;
  Rows const three{8, 2, 1};
  CHECK(measured == std::map<std::size_t, Rows>{{1, three}, {2, three}, {4, three}, {8, three}});
  CHECK(measured_sizes() == Rows{8, 4, 2, 1});  // what was chosen is kept, for a pipeline of it

  std::filesystem::remove(with.cost_file);
  measured.clear();
  sized.offloaded_micro_batches = 2;  // of a round, so that eight rows have none
  CHECK(choose(sized, {.rounds = 1}).chosen.cut.rows == 4);
  Rows const ends{4, 1};  // one size between is on the line through both
  CHECK(measured == std::map<std::size_t, Rows>{{2, ends}, {4, ends}, {8, ends}});
}

TEST_CASE("devices see the layers once, however many sizes are measured") {
  auto with = options(16_MiB);
  with.costs = CostSource::measured;
  EvaluatedDense const layer;
  HostBackendOptions machine;
  machine.devices = 2;
  LoadsCode backend(machine);
  Sequential const model{ToyInput{}, layer, ToyLoss{}};
  (void)automatic(model, AdamW{}, backend, with, {8, 3});
  CHECK(*layer.evaluations == 2);  // one on each device
}

TEST_CASE("a choice tells how long it took to measure and to plan") {
  using namespace std::chrono_literals;
  auto with = options(1_MiB);
  std::atomic<int> forecasts = 0;
  with.forecast = [&](auto const&...) {
    ++forecasts;
    std::this_thread::sleep_for(2ms);
    return 1.0;
  };
  auto const choice = choose(with);
  CHECK(choice.planned_s >= 2e-3 * forecasts);
  CHECK(choice.measured_s > 0);
}

TEST_CASE("sizes between those that are measured have costs between theirs") {
  auto with = options(1_MiB);
  with.costs = CostSource::measured;
  std::map<std::size_t, double> seconds;  // of a micro-batch, by their number
  with.forecast = [&](ActionGraph const& call, auto const&, CostModel const& costs, auto const&) {
    auto const micro_batches = micro_batches_of(call);
    seconds.emplace(micro_batches, costs.micro_batch_s());
    return 1 / static_cast<double>(micro_batches);
  };
  auto const choice = choose(with);
  REQUIRE(seconds.size() == 4);
  CHECK(choice.options.known_costs.value().micro_batch_s() == seconds.at(8));
  // Of 8, 4, 2 and 1 rows, 4 are not measured.
  CHECK(seconds.at(2) == doctest::Approx(seconds.at(4) + (seconds.at(1) - seconds.at(4)) / 3));
}

TEST_CASE("sizes without a plan are not measured, but those next to them are") {
  TemporaryFolder const folder;
  auto with = options(1_MiB);
  with.costs = CostSource::measured;
  with.cost_file = folder.path / "costs";
  with.offloaded_micro_batches = 4;  // of a round, so that eight rows have none
  auto const choice = choose(with, {.rounds = 1});
  HostBackend const backend(HostBackendOptions{.devices = 2});
  auto const device = backend.device_properties(DeviceId(0));
  auto const is_measured = [&](std::int64_t rows) {
    auto const model = describe(toy_model({.dense = 3}), {rows, 3});
    return find_costs(with.cost_file, model, device, 2).has_value();
  };
  CHECK_FALSE(is_measured(8));
  CHECK_FALSE(is_measured(4));
  CHECK(is_measured(2));
  CHECK(is_measured(1));
  CHECK(choice.chosen.cut.rows <= 2);
}

TEST_CASE("code that layers have loaded is not allowed for again") {
  auto with = options(1);
  with.costs = CostSource::measured;
  auto const choose_on = [&](LoadsCode& backend) {
    return automatic(toy_model({.dense = 3}), AdamW{}, backend, with, {8, 3});
  };
  LoadsCode fresh;
  try {
    (void)choose_on(fresh);
  } catch (OverBudget const& lack) {
    with.device_memory = lack.least();
  }
  CHECK(with.device_memory > 8_MiB);
  CHECK_FALSE(fresh.has_run);  // it is refused before a layer runs
  auto const choice = choose_on(fresh);
  CHECK(fresh.has_run);
  Pipeline const pipeline(toy_model({.dense = 3}), AdamW{}, fresh, choice.options);
}

TEST_CASE("a plan is made in the knowledge of the best one with larger micro-batches") {
  for (std::size_t const threads : {1, 3}) {
    auto with = options(1_MiB);
    with.forecast = [](ActionGraph const& call, auto const&, auto const&, auto const&) {
      return 1 / static_cast<double>(micro_batches_of(call));
    };
    auto const choice = choose(with, {}, threads);
    CHECK(choice.chosen.cut.rows == 1);
    auto best = std::numeric_limits<double>::infinity();
    for (auto const& other : choice.tried) {
      best = other.cut.rows > 1 ? std::min(best, other.seconds) : best;
    }
    CHECK(choice.options.seconds_to_beat == best);
    CHECK(choose(with, {.rows = 1}, threads).options.seconds_to_beat ==
          std::numeric_limits<double>::infinity());
  }
}

TEST_CASE("a pipeline of options that have changed since is planned with nothing to beat") {
  PipelineOptions with{.capacity = {2, 3}, .micro_batches_per_round = 3, .devices = 2};
  with.host_memory = 64_MiB;
  with.forecast = forecast_training_seconds;
  auto const made = [&] {
    HostBackend backend({.devices = 2});
    return Pipeline(toy_model({.dense = 3}), AdamW{}, backend, with).plan();
  };
  with.device_memory = 1;
  try {
    (void)made();
  } catch (OverBudget const& lack) {
    with.device_memory = 2 * lack.least();
  }
  auto const best = made();
  REQUIRE(best.stages.train.size() > 1);
  with.seconds_to_beat = best.seconds / 2;
  auto const other = made();
  CHECK(other.seconds == best.seconds);
  CHECK(other.stages.partition == best.stages.partition);
}

TEST_CASE("what a plan knows of others does not depend on threads") {
  for (std::size_t const threads : {1, 3}) {
    auto with = options(1_MiB);
    with.forecast = [](ActionGraph const& call, auto const&, auto const&, auto const&) {
      static std::map<std::size_t, std::vector<double>> const seconds{// by rounds, 1, 2 and 4
                                                                      {1, {3}},
                                                                      {2, {2.5, 2}},
                                                                      {4, {1.5, 1.6, 1.7}},
                                                                      {8, {1.8, 1.8, 1.8, 1.8}}};
      auto const rounds = 1 + call.actions.back().round.index();
      return seconds.at(micro_batches_of(call)).at(static_cast<std::size_t>(std::log2(rounds)));
    };
    auto const choice = choose(with, {}, threads);
    CHECK(choice.chosen.seconds == 1.5);
    CHECK(choice.options.seconds_to_beat == 2.5);  // the first cut of the size before, not its best
  }
}

TEST_CASE("plans of a cut that lose by their bound to another cut have no forecast") {
  auto const ideal = choose(options(1_MiB), {.rows = 4}).options.known_costs.value();
  auto const ideal_s = ideal.micro_batch_s() * 2 / 2;  // of both micro-batches on two devices
  std::map<std::size_t, int> forecasts;                // by micro-batches
  auto with = options(1_MiB);
  with.forecast = [&](ActionGraph const& call, auto const&, auto const&, auto const&) {
    auto const micro_batches = micro_batches_of(call);
    ++forecasts[micro_batches];
    return (micro_batches == 1 ? 1.001 : 2) * ideal_s;
  };
  auto const choice = choose(with, {.rounds = 1});
  CHECK(choice.chosen.cut.rows == 8);
  CHECK(forecasts.at(1) > 0);
  CHECK_FALSE(forecasts.contains(2));
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

namespace {

constexpr NetworkCost fast{.bytes_per_second = 1e12};
constexpr NetworkCost slow{.bytes_per_second = 1e7};

/// Matrices that ranks share.
auto wide_model() {
  ToyModelOptions model;
  model.types.width = 96;
  model.dense = 3;
  return toy_model(model);
}

/// What rank 0 of \p ranks chooses, which have eight rows each.
AutomaticChoice choose_for(std::size_t ranks,
                           NetworkCost const& network,
                           BatchCut const& wanted = {},
                           Bytes host_memory = 64_MiB) {
  HostBackendOptions machine;
  machine.devices = 2;
  machine.link = {.upload_bytes_per_second = 1e9, .download_bytes_per_second = 1e9};
  HostBackend backend(machine);
  auto with = options(1_MiB);
  with.host_memory = host_memory;
  with.ranks = ranks;
  with.network = network;
  return automatic(
      wide_model(), AdamW{}, backend, with, {static_cast<std::int64_t>(8 * ranks), 3}, wanted);
}

/// What each of two ranks chooses for 16 rows, or how it refuses.
struct ChoiceOfRanks {
  std::array<std::optional<AutomaticChoice>, 2> choices;
  std::vector<Error> errors;

  explicit ChoiceOfRanks(std::array<PipelineOptions, 2> const& with,
                         std::array<BatchCut, 2> const& wanted = {},
                         std::size_t planners = 1) {
    LoopbackNetwork network(2);
    std::mutex mutex;
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        LoopbackGroup group(network, r);
        HostBackend backend({.devices = 1 + r});
        try {
          choices[r] = automatic(wide_model(),
                                 AdamW{},
                                 backend,
                                 with[r],
                                 {16, 3},
                                 wanted[r],
                                 Policies{.group = group},
                                 planners);
        } catch (Error const& error) {
          std::lock_guard const lock(mutex);
          errors.push_back(error);
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }
};

Bytes host_bytes(AutomaticChoice const& choice) {
  return total_bytes(choice.plan->ledger, LedgerLine::Space::host);
}

}  // namespace

TEST_CASE("with several ranks the batch is that of all, and rounds are those of one") {
  auto const choice = choose_for(2, fast);
  for (auto const& [cut, seconds, stages] : choice.tried) {
    CHECK(cut.rows * static_cast<std::int64_t>(cut.micro_batches_per_round * cut.rounds) == 8);
  }
  CHECK(choice.options.rounds == choice.chosen.cut.rounds);
  HostBackend backend({.devices = 1});
  auto with = options(1_MiB);
  with.ranks = 3;
  CHECK(error_of([&] {
          (void)automatic(wide_model(), AdamW{}, backend, with, {16, 3});
        }).message() == "a batch of 16 rows has no equal parts for 3 ranks");
}

TEST_CASE("a slow network is part of the forecast, and each round pays for it") {
  auto const near = choose_for(2, fast);
  auto const far = choose_for(2, slow);
  CHECK(near.chosen.cut.rounds > 1);
  CHECK(far.chosen.cut.rounds == 1);
  // A rank gets half of the gradients of a round, and half of the weights of a step.
  auto const bytes = static_cast<double>(sizeof(float) * far.plan->blocks.parameter_count());
  CHECK(far.chosen.seconds == doctest::Approx(bytes / slow.bytes_per_second).epsilon(0.01));
  CHECK(near.chosen.seconds < far.chosen.seconds / 10);
  CHECK(far.plan->costs.network() == slow);
  CHECK(far.options.known_costs.value().network() == slow);
  CHECK(far.options.network == slow);
  CHECK(choose_for(1, slow).chosen.seconds == choose_for(1, fast).chosen.seconds);
}

TEST_CASE("ranks that share states fit hosts that are too small for all of them") {
  BatchCut const cut{.rows = 2, .rounds = 2};
  auto const alone = choose_for(1, fast, cut);
  auto const shared = choose_for(4, fast, cut);
  CHECK(host_bytes(shared) < host_bytes(alone));
  CHECK(choose_for(4, fast, cut, host_bytes(shared)).chosen.cut.rows == 2);
  CHECK(error_of([&] { (void)choose_for(1, fast, cut, host_bytes(shared)); }).code() ==
        Errc::over_budget);
}

TEST_CASE("ranks choose one cut, which fits all, by the slowest of them") {
  auto large = options(1_MiB);
  large.network = fast;
  auto small = large;
  small.device_memory = 300_KiB;
  for (std::size_t const planners : {1, 3}) {
    ChoiceOfRanks const found({large, small}, {}, planners);
    REQUIRE(found.errors.empty());
    auto const& [first, second] = found.choices;
    HostBackend const backend({.devices = 1});
    auto const emulated = backend.device_properties(DeviceId(0));
    REQUIRE(first->tried.size() == second->tried.size());
    for (std::size_t i = 0; i < first->tried.size(); ++i) {
      CHECK(first->tried[i].cut.rows == second->tried[i].cut.rows);
      CHECK(first->tried[i].cut.rounds == second->tried[i].cut.rounds);
      CHECK(first->tried[i].seconds == second->tried[i].seconds);
    }
    CHECK(first->chosen.cut.rows == second->chosen.cut.rows);
    CHECK(first->chosen.cut.rounds == second->chosen.cut.rounds);
    // Rank 0 has one device, rank 1 two.
    CHECK(first->chosen.seconds ==
          forecast_training_seconds(
              first->plan->graph, first->plan->step, first->plan->costs, emulated));
    CHECK(first->chosen.seconds >
          forecast_training_seconds(
              second->plan->graph, second->plan->step, second->plan->costs, emulated));
  }
}

TEST_CASE("a rank with little host memory keeps less of the states while cuts are planned") {
  BatchCut const cut{.rows = 2, .rounds = 2};
  auto large = options(1_MiB);
  large.network = fast;
  auto small = large;
  small.host_memory = host_bytes(choose_for(2, fast, cut)) - 64_KiB;  // with an equal part
  ChoiceOfRanks const found({large, small}, {cut, cut});
  REQUIRE(found.errors.empty());
  CHECK(host_bytes(*found.choices[1]) <= small.host_memory);
  CHECK(host_bytes(*found.choices[1]) < host_bytes(*found.choices[0]));
  CHECK(found.choices[1]->options.rank_shares.empty());  // a pipeline finds them again
}

TEST_CASE("the search goes on while the fastest rank might have a faster plan") {
  auto with = options(1_MiB);
  with.network = fast;
  auto const alone = choose_for(1, fast, {.rows = 1});
  auto const of_two_devices = alone.options.known_costs.value().micro_batch_s() * 8 / 2;
  with.forecast = [=](auto const&...) { return 1.5 * of_two_devices; };
  BatchCut const cut{.rows = 1};
  ChoiceOfRanks const found({with, with}, {cut, cut});
  REQUIRE(found.errors.empty());
  // After the first, plans of the slower rank lose by their bounds, and two of them end the search.
  CHECK(found.choices[0]->tried.size() == 1 + detail::patience);
}

TEST_CASE("what does not fit one rank is refused on all, with its number") {
  auto const large = options(1_MiB);
  auto small = large;
  small.device_memory = 10_KiB;
  ChoiceOfRanks const found({large, small});
  REQUIRE(found.errors.size() == 2);
  for (auto const& error : found.errors) {
    CHECK(error.code() == Errc::over_budget);
    CHECK(error.message().find("rank 1: ") == 0);
  }
  auto offloads = large;
  offloads.offloaded_micro_batches = 9;  // of eight rows
  ChoiceOfRanks const refused({large, offloads});
  REQUIRE(refused.errors.size() == 2);
  CHECK(refused.errors[0].code() == Errc::invalid_argument);
  CHECK(refused.errors[1].code() == Errc::invalid_argument);
}

TEST_CASE("ranks choose for the same batch") {
  ChoiceOfRanks const found({options(1_MiB), options(1_MiB)}, {BatchCut{}, BatchCut{.rounds = 2}});
  REQUIRE(found.errors.size() == 2);
  for (auto const& error : found.errors) {
    CHECK(error.message().find("rank 1 chooses a cut for batches of 16 rows") == 0);
  }
}

TEST_CASE("ranks train with the cut that they have chosen, and plan what they have chosen") {
  LoopbackNetwork network(2);
  std::array<double, 2> losses{};
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      auto const model = wide_model();
      AdamW const optimizer;
      HostBackend backend({.devices = 1 + r});
      auto options = automatic_test::options(1_MiB);
      options.forecast = forecast_training_seconds;
      LoopbackGroup group(network, r);
      // The code of docs/11_several_hosts.md; docs_are_tested.cmake looks for it here.
      Policies const policies{.group = group};
      auto const choice = automatic(model, optimizer, backend, options, {24, 3}, {}, policies);
      Pipeline pipeline{model, optimizer, backend, choice.options, policies};
      CHECK(pipeline.plan().stages.partition.forward == choice.plan->stages.partition.forward);
      CHECK(total_bytes(pipeline.plan().ledger, LedgerLine::Space::host) == host_bytes(choice));
      auto const& cut = choice.chosen.cut;
      ToyData const data(static_cast<std::size_t>(24 / cut.rows), {cut.rows, 3}, 7);
      losses[r] = pipeline.forward_backward(data.batch());
      pipeline.step();
      pipeline.synchronize();
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  CHECK(losses[0] == losses[1]);
}

TEST_CASE("ranks that measure find their network once, and a pipeline takes it") {
  auto measures = options(1_MiB);
  measures.costs = CostSource::measured;
  BatchCut const cut{.rows = 8};
  ChoiceOfRanks const found({measures, options(1_MiB)}, {cut, cut});
  REQUIRE(found.errors.empty());
  REQUIRE(found.choices[0]->options.network.has_value());
  CHECK(found.choices[0]->options.network->latency_s > 0);
  CHECK(found.choices[1]->options.network == found.choices[0]->options.network);
  CHECK(found.choices[1]->plan->costs.network() == found.choices[0]->options.network);
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
  // The least that any cut takes is named, and works.
  for (Bytes const budget : {Bytes{1}, too_small}) {
    auto small = options(budget);
    auto const lack = least_for(small);
    CHECK(lack.space() == LedgerLine::Space::device);
    CHECK(lack.message().find("smallest budget that works") != std::string::npos);
    CHECK(lack.least() <= least);
    small.device_memory = lack.least();
    CHECK_NOTHROW((void)choose(small));
    small.device_memory -= tensor_alignment_bytes;
    CHECK(least_for(small).least() == lack.least());
  }
}

TEST_CASE("when the host has room for no cut, the error names the least that one takes") {
  auto small = options(1_MiB);
  small.host_memory = 1000;
  auto const lack = least_for(small);
  CHECK(lack.space() == LedgerLine::Space::host);
  for (std::int64_t rows = 1; rows <= 8; rows *= 2) {
    CHECK(least_for(small, {.rows = rows}).least() >= lack.least());
  }
  small.host_memory = lack.least();
  CHECK(host_bytes(choose(small)) <= lack.least());
}

}  // namespace automatic_test
