// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/explain.hpp>

#include <roundpipe/adaws/adaws_terms.hpp>
#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/contains.hpp>
#include <support/own_policies.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace explain_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

PipelineOptions some_options(std::size_t devices = 1) {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = 4;
  options.rounds = 3;
  options.devices = devices;
  options.device_memory = 1_GiB;
  options.host_memory = 64_MiB;
  return options;
}

/// By OneLayerStages: the stages of six layers.
template <class P = OneLayerStages>
PipelinePlan plan(PipelineOptions const& options, bool reaches_peers = false) {
  auto const model = toy_model({.dense = 4});
  HostBackendOptions machine;
  machine.devices = options.devices;
  machine.reaches_peers = reaches_peers;
  HostBackend backend(machine);
  Planner const planner{RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, P{}};
  ShapeCache const shapes(model, options.capacity);
  return make_pipeline_plan(model, backend, planner, shapes.capacity(), options, {2});
}

/// Whatever is planned takes as long.
double any_plan(ActionGraph const&, ActionGraph const&, CostModel const&, DeviceProperties const&) {
  return 1;
}

/// "value; reason" of a decision; empty where there is none.
std::string decision(PipelinePlan const& plan,
                     PipelineOptions const& options,
                     std::string_view name) {
  auto const all = explain(plan, options);
  auto const found =
      std::find_if(all.begin(), all.end(), [&](Decision const& each) { return each.name == name; });
  return found == all.end() ? "" : found->value + "; " + found->reason;
}

std::string decision(PipelineOptions const& options,
                     std::string_view name,
                     bool reaches_peers = false) {
  return decision(plan(options, reaches_peers), options, name);
}

}  // namespace

TEST_CASE("a decision is a line of its name, its value and its reason") {
  CHECK(to_string({"saves", "none", "there are none"}) == "saves        none; there are none");
  CHECK(to_string({"a rather long name", "value", ""}) == "a rather long name value");
}

TEST_CASE("every decision has a line, with several devices one for what goes between them") {
  std::vector<std::string> const names{"stages",
                                       "checkpoints",
                                       "saves",
                                       "overlap",
                                       "parameters",
                                       "boundaries",
                                       "buffering",
                                       "as AdaWS"};
  auto options = some_options();
  auto const made = plan(options);
  std::vector<std::string> found;
  for (auto const& each : explain(made, options)) {
    found.push_back(each.name);
    CHECK(!each.value.empty());
    CHECK(each.reason.empty() == (each.name == "as AdaWS"));
    CHECK(!contains(to_string(each), "\n"));
  }
  CHECK(found == names);
  auto sizes = plan_options(options);
  CHECK(explain(made, options).back().value ==
        to_string(adaws_terms(made.model, made.stages, sizes)));
  CHECK(contains(explain(made, options).back().value, "3 rounds of 4 chunks"));
  options.devices = 0;  // all, of which there is one
  CHECK(explain(made, options).size() == names.size());
  options = some_options(2);
  auto const two = explain(plan(options), options);
  REQUIRE(two.size() == names.size());
  CHECK(two[6].name == "peers");
  CHECK(two.back().name == "buffering");
}

TEST_CASE("stages are told by their layers") {
  CHECK(contains(decision(some_options(), "stages"),
                 "forward 1 (5x); fused 1; backward 1 (5x) layers; "));
  auto options = some_options();
  auto const one = plan<OneStage>(options);
  CHECK(decision(one, options, "stages") ==
        "one, of 6 layers; the device has room for all, and nothing runs twice");
  for (auto const* name : {"checkpoints", "overlap", "boundaries"}) {
    CHECK(decision(one, options, name) == "none; there is one stage");
  }
  CHECK(contains(decision(one, options, "saves"), "all stay on the device"));
  CHECK(contains(decision(one, options, "parameters"), "go up once a round"));
  options.buffering = Buffering{1, 1, 1, 1};
  CHECK(contains(decision(plan<OneStage>(options), options, "parameters"),
                 "blocks stay on the device for a call"));
}

TEST_CASE("saves are counted in all rounds of a call, by their level") {
  auto options = some_options();
  CHECK(contains(decision(options, "saves"), "the others are recomputed"));
  CHECK(decision(options, "checkpoints") == "behind stages; without a forecast");
  options.offloaded_micro_batches = 3;
  CHECK(contains(decision(options, "saves"),
                 "of a call's 48 before the fused stage the host keeps 36 at level "));
  CHECK(contains(decision(options, "saves"), "; pinned"));
  CHECK(decision(options, "checkpoints") == "behind every layer; saves that are pinned need them");
  options.offloaded_micro_batches = std::nullopt;
  std::vector<std::size_t> const first(4, 1);
  std::vector<std::size_t> const all(4, 2);
  options.save_levels = {{}, first, all};
  options.levels_of_rounds = {{0, {{}, first}}, {2, {}}};
  CHECK(contains(decision(options, "saves"), " keeps 8 at level 1 of 2, 4 at level 2 of 2; "));
  options.checkpoints = Checkpoints::layers;
  CHECK(decision(options, "checkpoints") == "behind every layer; pinned");
}

TEST_CASE("what is pinned is told, what the forecast left, and that there was none") {
  auto options = some_options();
  auto const ends_with = [](std::string const& text, std::string_view end) {
    CAPTURE(text);
    CHECK(text.ends_with(end));
  };
  for (auto const* name : {"checkpoints", "overlap", "parameters", "boundaries"}) {
    ends_with(decision(options, name), "; without a forecast");
  }
  options.forecast = any_plan;
  options.resident_boundaries = options.resident_parameters = false;
  auto const chosen = plan(options);
  ends_with(decision(chosen, options, "checkpoints"), "; faster by forecast, or as fast");
  ends_with(decision(chosen, options, "overlap"),
            "; with overlap no plan is clearly faster by forecast");
  CHECK(decision(chosen, options, "parameters") == "go up for each stage; pinned");
  CHECK(decision(chosen, options, "boundaries") == "all pass through the host; pinned");
  auto left_open = options;
  left_open.resident_boundaries = left_open.resident_parameters = std::nullopt;
  ends_with(decision(chosen, left_open, "parameters"), "; no room, or nothing gained");
  ends_with(decision(chosen, left_open, "boundaries"), "; no room, or nothing gained");

  options.overlaps_rounds = true;
  options.checkpoints = Checkpoints::stages;
  CHECK(decision(options, "overlap") ==
        "a round's forward takes turns with the backward of the round before; pinned");
  options.overlaps_rounds = std::nullopt;
  ends_with(decision(options, "overlap"), "beside pinned checkpoints or saves");
  options.rounds = 1;
  CHECK(decision(options, "overlap") == "none; a call has one round");
}

TEST_CASE("what stays on devices is told with its bytes, and what goes from one to another") {
  auto options = some_options();
  options.resident_parameters = options.resident_boundaries = true;
  auto const made = plan(options);
  auto const& memory = made.stages.memory;
  REQUIRE(!memory.resident_parameters.empty());
  auto const parameters = decision(made, options, "parameters");
  CHECK(contains(parameters,
                 std::to_string(memory.resident_parameters.size()) + " of 6 blocks stay on the " +
                     "device for a call, in " + format_bytes(memory.resident_parameter_bytes())));
  CHECK(contains(parameters, "; pinned"));
  auto const boundaries = decision(made, options, "boundaries");
  auto const& room = memory.resident;
  auto const bytes = room.checkpoints.entry_bytes * room.checkpoints.count +
                     room.gradients.entry_bytes * room.gradients.count;
  CHECK(contains(boundaries, "of a round 20 checkpoints and 20 gradients stay on the device, in "));
  CHECK(contains(boundaries, format_bytes(bytes) + "; pinned"));

  options = some_options(2);
  CHECK(decision(options, "peers", true) ==
        "no boundary goes from device to device; without a forecast");
  options.peer_boundaries = true;
  auto const sent = plan(options, true);
  std::size_t sends = 0;
  for (auto const& action : sent.graph.actions) {
    sends += action.kind == ActionKind::send_boundary ? 1 : 0;
  }
  REQUIRE(sends > 0);
  CHECK(contains(decision(sent, options, "peers"),
                 "of a call " + std::to_string(sends) + " boundaries go from device to device"));
  CHECK(contains(decision(sent, options, "boundaries"), "stay on devices, in "));
}

TEST_CASE("entries are told, and what two of each would take") {
  auto options = some_options();
  CHECK(decision(options, "buffering") ==
        "entries of parameters 2, gradients 2, activations 2; every copy has room beside compute");
  options.offloaded_micro_batches = 2;
  options.buffering = Buffering{2, 1, 2, 5};
  CHECK(decision(options, "buffering") ==
        "entries of parameters 2, gradients 1, activations 2, saves 5; pinned");

  options = some_options();
  auto const wide = plan(options);
  auto const most = total_bytes(wide.ledger, LedgerLine::Space::device) + 1_MiB;
  options.device_memory = most - 1_MiB - 1;
  auto narrow = plan(options);
  REQUIRE(narrow.stages.memory.buffering.gradients == 1);
  narrow.ledger.push_back({LedgerLine::Space::device, "context", 1_MiB});
  CHECK(contains(decision(narrow, options, "buffering"),
                 "; two of each would take " + format_bytes(most) + ", more than the budget"));
  options.device_memory = 0;
  CHECK(decision(narrow, options, "buffering").ends_with("would take " + format_bytes(most)));
  options.forecast = any_plan;
  CHECK(contains(decision(narrow, options, "buffering"), "the forecast gains nothing by them"));
}

}  // namespace explain_test
