// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/pipeline_plan.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/memory/over_budget.hpp>
#include <roundpipe/model/sequential.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <support/error_of.hpp>
#include <support/temporary_folder.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

namespace pipeline_plan_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

PipelineOptions small_options() {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = 3;
  options.devices = 2;
  options.device_memory = 1_MiB;
  options.host_memory = 64_MiB;
  return options;
}

template <class B = HostBackend>
PipelinePlan plan(PipelineOptions const& options, int staleness = 1) {
  auto const model = toy_model({.dense = 3});
  HostBackendOptions machine;
  machine.devices = 2;
  B backend(machine);
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol(staleness), Partitioner{}};
  ShapeCache const shapes(model, options.capacity);
  return make_pipeline_plan(model, backend, planner, shapes.capacity(), options, {2});
}

/// A process that holds 10,000 bytes of each device, and more for the host memory that it maps.
struct Mapped : HostBackend {
  using HostBackend::HostBackend;
  static constexpr double page_table_share = 0.01;
  [[nodiscard]] Bytes overhead_bytes(DeviceId) const { return 10'000; }
};

/// A process that holds 5,000 bytes of the host's memory besides.
struct Crowded : HostBackend {
  using HostBackend::HostBackend;
  [[nodiscard]] Bytes host_overhead_bytes() const { return 5'000; }
};

/// Why \p options have no plan.
template <class B = HostBackend>
OverBudget refusal_of(PipelineOptions const& options) {
  try {
    (void)plan<B>(options);
  } catch (OverBudget const& lack) {
    return lack;
  }
  FAIL("there is a plan");
  return {{}, {}, 0, {}};
}

/// The least device budget for \p options.
Bytes refusal_least(PipelineOptions options) {
  options.device_memory = 1;
  return refusal_of(options).least();
}

}  // namespace

TEST_CASE("a plan follows its options, and counts every byte") {
  auto const made = plan(small_options());
  CHECK(made.model.size() == 5);
  CHECK(made.costs.layers().size() == 5);
  CHECK(made.graph.devices == 2);
  CHECK(made.stages.memory.bytes <= 1_MiB);
  CHECK(total_bytes(made.ledger, LedgerLine::Space::device) == made.stages.memory.bytes);
  CHECK(total_bytes(made.ledger, LedgerLine::Space::host) > 0);
  std::size_t steps = 0;
  for (auto const& action : made.step.actions) {
    steps += action.kind == ActionKind::optimizer_step ? 1 : 0;
  }
  CHECK(steps == made.blocks.blocks.size());
}

TEST_CASE("known costs replace measured ones, and must be those of the model's layers") {
  auto options = small_options();
  options.costs = CostSource::measured;
  options.known_costs = CostModel(std::vector<LayerCost>(5, LayerCost{3, 4}));
  auto const made = plan(options);
  REQUIRE(made.costs.layers().size() == 5);
  CHECK(made.costs.layers()[2].forward_s == 3);
  CHECK(made.costs.layers()[4].backward_s == 4);
  options.known_costs = CostModel(std::vector<LayerCost>(4, LayerCost{3, 4}));
  CHECK(error_of([&] { (void)plan(options); }).code() == Errc::invalid_argument);
}

TEST_CASE("a backend hears the budget before a layer runs, and that the next one has none") {
  struct Limited : HostBackend {
    using HostBackend::HostBackend;
    void limit_memory(Bytes most) { limits.push_back(most); }
    std::vector<Bytes> limits;
  };
  /// Notes what its backend has heard.
  struct Watching : ToyScale {
    Limited const* backend = nullptr;
    std::size_t* heard = nullptr;
    void forward(ForwardContext<HostStream>& ctx) const {
      *heard = backend->limits.size();
      ToyScale::forward(ctx);
    }
  };
  Limited backend(HostBackendOptions{.devices = 2});
  std::size_t heard = 0;
  Watching watching;
  watching.backend = &backend;
  watching.heard = &heard;
  Sequential const model{ToyInput{}, repeat(3, watching), ToyLoss{}};
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol(1), Partitioner{}};
  auto options = small_options();
  options.costs = CostSource::measured;
  ShapeCache const shapes(model, options.capacity);
  for (Bytes const budget : {1_MiB, Bytes{0}}) {
    options.device_memory = budget;
    (void)layer_costs(model, backend, planner, shapes.capacity(), options, {2});
    CHECK(heard == backend.limits.size());
    CHECK(backend.limits.back() == budget);
  }
  CHECK(backend.limits.size() == 2);
}

TEST_CASE("costs in the file of costs are not measured again") {
  /// Counts its forwards.
  struct Counted : ToyScale {
    std::size_t* forwards = nullptr;
    void forward(ForwardContext<HostStream>& ctx) const {
      ++*forwards;
      ToyScale::forward(ctx);
    }
  };
  TemporaryFolder const folder;
  auto options = small_options();
  options.costs = CostSource::measured;
  options.cost_file = folder.path / "costs";
  Counted counted;
  std::size_t forwards = 0;
  counted.forwards = &forwards;
  HostBackend backend(HostBackendOptions{.devices = 2});
  Sequential const model{ToyInput{}, repeat(3, counted), ToyLoss{}};
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol(1), Partitioner{}};
  auto const costs = [&] {
    forwards = 0;
    ShapeCache const shapes(model, options.capacity);
    return layer_costs(model, backend, planner, shapes.capacity(), options, {2}).layers();
  };
  auto const measured = costs();
  CHECK(forwards > 0);
  auto const kept = costs();
  CHECK(forwards == 0);
  REQUIRE(kept.size() == measured.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    CHECK(kept[i].forward_s == measured[i].forward_s);
    CHECK(kept[i].backward_s == measured[i].backward_s);
    CHECK(kept[i].replay_s == measured[i].replay_s);
    CHECK(kept[i].round_s == measured[i].round_s);
  }
  CHECK(measured.front().round_s > 0);  // the first layer has parameters

  options.capacity = {1, 3};
  (void)costs();
  CHECK(forwards > 0);  // another size
  options.capacity = {2, 3};
  (void)costs();
  CHECK(forwards == 0);  // the first one is still there
  options.devices = 1;
  (void)costs();
  CHECK(forwards > 0);  // another number of devices
  options.devices = 2;
  (void)costs();
  CHECK(forwards == 0);

  options.known_costs = CostModel(std::vector<LayerCost>(5, LayerCost{3, 4}));
  CHECK(costs()[2].forward_s == 3);  // whatever the file has
  options.known_costs.reset();
  std::ofstream(options.cost_file) << "something else\n";
  CHECK(error_of(costs).code() == Errc::invalid_argument);
  CHECK(forwards == 0);
}

TEST_CASE("offloaded saves have lines of their own in the ledger, within both budgets") {
  auto options = small_options();
  auto const recomputes = plan(options);
  REQUIRE_FALSE(recomputes.stages.partition.forward.empty());
  auto const line_of = [](PipelinePlan const& made, std::string const& name) {
    Bytes bytes = 0;
    for (auto const& line : made.ledger) {
      bytes += line.name.rfind(name, 0) == 0 ? line.bytes : 0;
    }
    return bytes;
  };
  CHECK(line_of(recomputes, "saves on their way") == 0);
  CHECK(line_of(recomputes, "offloaded saves") == 0);
  options.offloaded_micro_batches = 2;
  auto const made = plan(options);
  Bytes expected = 0;
  Bytes largest = 0;
  for (auto const& stage : made.stages.partition.forward) {
    for (auto layer = stage.first; layer < stage.end(); ++layer) {
      auto const saved = align_up(made.model.layers[layer].footprint.saved_bytes);
      expected += 2 * saved;
      largest = std::max(largest, saved);
    }
  }
  REQUIRE(expected > 0);
  CHECK(line_of(made, "offloaded saves") == expected);
  CHECK(line_of(made, "saves on their way") == largest * made.stages.memory.buffering.saves);
  CHECK(total_bytes(made.ledger, LedgerLine::Space::device) == made.stages.memory.bytes);
}

TEST_CASE("a budget holds what the process takes besides the plan, page tables for the host too") {
  auto options = small_options();
  auto const free = plan(options);
  auto const made = plan<Mapped>(options);
  auto const host = total_bytes(made.ledger, LedgerLine::Space::host);
  auto const held = 10'000 + static_cast<Bytes>(0.01 * static_cast<double>(host));
  auto const device = total_bytes(made.ledger, LedgerLine::Space::device);
  CHECK(device == made.stages.memory.bytes + held);
  CHECK(device <= 1_MiB);
  CHECK(total_bytes(free.ledger, LedgerLine::Space::device) == free.stages.memory.bytes);

  // As much as the plan takes is enough; with less, another plan takes less, or none does.
  options.device_memory = device;
  CHECK(plan<Mapped>(options).stages.partition == made.stages.partition);
  std::string const announced = "the smallest budget that works is ";
  std::string refusal;
  for (; refusal.empty(); options.device_memory -= refusal.empty() ? 1024 : 0) {
    try {
      auto const smaller = plan<Mapped>(options);
      CHECK(total_bytes(smaller.ledger, LedgerLine::Space::device) <= options.device_memory);
    } catch (Error const& error) {
      CHECK(error.code() == Errc::over_budget);
      refusal = error.message();
    }
  }
  CHECK(refusal.find("the process holds 10000 there already") != std::string::npos);

  // The budget that a refusal names works, and has 1 MiB for what another process holds in
  // addition.
  options.device_memory = std::stoull(refusal.substr(refusal.find(announced) + announced.size()));
  auto const least = plan<Mapped>(options);
  CHECK(total_bytes(least.ledger, LedgerLine::Space::device) <= options.device_memory);
  options.device_memory -= 1_MiB;
  CHECK_NOTHROW((void)plan<Mapped>(options));
  options.device_memory -= tensor_alignment_bytes;
  CHECK(error_of([&] { (void)plan<Mapped>(options); }).code() == Errc::over_budget);
}

TEST_CASE("a step waits for all gradients when it must see them all") {
  auto options = small_options();
  CHECK(waits_for_all(options));
  CHECK_FALSE(step_options(options, 2).measures_gradients);
  options.step_start = StepStart::each_block;
  CHECK_FALSE(waits_for_all(options));
  options.clip_norm = 1;
  CHECK(waits_for_all(options));
  options.clip_norm = 0;
  options.loss_scale.emplace();
  CHECK(waits_for_all(options));
}

TEST_CASE("the host's budget counts what the process holds besides the plan") {
  auto options = small_options();
  auto const bytes = total_bytes(plan(options).ledger, LedgerLine::Space::host);
  options.host_memory = bytes + 5'000;
  auto const made = plan<Crowded>(options);
  CHECK(total_bytes(made.ledger, LedgerLine::Space::host) == bytes + 5'000);
  CHECK(total_bytes(made.host.ledger, LedgerLine::Space::host) == bytes);
  --options.host_memory;
  auto const less = plan<Crowded>(options);
  CHECK(total_bytes(less.ledger, LedgerLine::Space::host) <= options.host_memory);
  options.host_memory = 6'000;
  auto const lack = refusal_of<Crowded>(options);
  CHECK(lack.space() == LedgerLine::Space::host);
  CHECK(lack.message().find("besides") != std::string::npos);
  auto const needed = total_bytes(lack.ledger(), LedgerLine::Space::host);
  CHECK(lack.least() == needed + 5'000 / 16);  // another process may hold more
}

TEST_CASE("a plan that a host budget has room for is not lost to it") {
  auto options = small_options();
  options.forecast = forecast_training_seconds;
  options.devices = 1;
  auto const seconds = [&](PipelinePlan const& made) {
    return forecast_training_seconds(made.graph, made.step, made.costs, {});
  };
  HostBackend const backend(HostBackendOptions{});
  auto const emulated = backend.device_properties(DeviceId(0));
  auto const has_forecast = [&](PipelinePlan const& made) {
    return made.seconds == forecast_training_seconds(made.graph, made.step, made.costs, emulated);
  };
  auto const host_bytes = [](PipelinePlan const& made) {
    return total_bytes(made.ledger, LedgerLine::Space::host);
  };
  auto const largest = plan(options).stages.memory.bytes;
  std::size_t resident = 0;
  std::size_t refused = 0;
  for (Bytes device = refusal_least(options); device < largest; device += largest / 16) {
    options.device_memory = device;
    options.host_memory = 64_MiB;
    auto const free = plan(options);
    resident += free.stages.resident.empty() ? 0 : 1;
    options.host_memory = host_bytes(free);
    auto const exact = plan(options);
    CHECK(host_bytes(exact) <= options.host_memory);
    CHECK(seconds(exact) <= seconds(free));
    CHECK(has_forecast(exact));
    // With less and less, until nothing fits; then what the refusal names does, with its ledger.
    for (bool fits = true; fits; options.host_memory -= fits ? host_bytes(free) / 32 : 0) {
      try {
        CHECK(host_bytes(plan(options)) <= options.host_memory);
      } catch (OverBudget const& lack) {
        fits = false;
        ++refused;
        CHECK(lack.space() == LedgerLine::Space::host);
        CHECK(lack.least() > options.host_memory);
        CHECK(lack.least() == total_bytes(lack.ledger(), LedgerLine::Space::host));
        CHECK(lack.message().find(std::to_string(lack.least()) + " bytes") != std::string::npos);
        CHECK(lack.message().find("master copies ") != std::string::npos);
        auto named = options;
        named.host_memory = lack.least();
        auto const least = plan(named);
        CHECK(host_bytes(least) == lack.least());
        CHECK(has_forecast(least));
      }
    }
  }
  CHECK(resident > 0);
  CHECK(refused > 4);
}

TEST_CASE("a plan that beats nothing is as good as one that has nothing to beat") {
  auto options = small_options();
  options.forecast = forecast_training_seconds;
  options.device_memory = 2 * refusal_least(options);
  auto const best = plan(options);
  REQUIRE(best.stages.train.size() > 1);
  options.seconds_to_beat = best.seconds / 2;
  auto const again = plan(options);
  CHECK(again.seconds == best.seconds);
  CHECK(again.stages.partition == best.stages.partition);
}

TEST_CASE(
    "a device's refusal lists what its least budget holds, and where the host lacks room, too") {
  auto options = small_options();
  options.device_memory = 1000;
  auto const lack = refusal_of<Mapped>(options);
  CHECK(lack.space() == LedgerLine::Space::device);
  CHECK(total_bytes(lack.ledger(), LedgerLine::Space::device) <= lack.least());
  CHECK(lack.message().find("scratch of stages ") != std::string::npos);
  CHECK(lack.message().find("context, modules, libraries, page tables ") != std::string::npos);
  CHECK(lack.message().find("of the host") == std::string::npos);
  options.host_memory = 1000;
  CHECK(refusal_of<Mapped>(options).message().find(
            "it takes more of the host than its budget of") != std::string::npos);
  options.names_least_budget = false;
  auto const brief = refusal_of<Mapped>(options);
  CHECK(brief.least() == 0);
  CHECK(brief.message().find("smallest") == std::string::npos);
}

TEST_CASE("a plan that does not fit into the host or a device is refused") {
  auto options = small_options();
  options.host_memory = 1000;
  auto const host = error_of([&] { (void)plan(options); });
  CHECK(host.code() == Errc::over_budget);
  CHECK(host.message().find("the host budget of 1000") != std::string::npos);
  options = small_options();
  options.device_memory = 1000;
  CHECK(error_of([&] { (void)plan(options); }).code() == Errc::over_budget);
}

}  // namespace pipeline_plan_test
