// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/policies/unplanned_transfers.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/mutants.hpp>
#include <support/own_policies.hpp>
#include <support/training_graphs.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <iomanip>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mutants_verify_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// The number of mutants of one kind.
struct Tally {
  std::size_t implied = 0;
  std::size_t pacing = 0;
  std::size_t caught = 0;
  std::size_t missed = 0;

  Tally& operator+=(Tally const& other) {
    implied += other.implied;
    pacing += other.pacing;
    caught += other.caught;
    missed += other.missed;
    return *this;
  }
};

std::map<std::string, Tally> tally_by_edge;  // by the kinds of the waiting action and of its target
std::map<std::string, std::map<Rule, std::size_t>> caught_by_mode;
std::size_t actions_checked = 0;

/// Drops each edge of \p graphs alone, always and in iterations of either parity, and all edges of
/// a kind together.
void check_mutants(std::string const& mode, TrainingGraphs const& graphs, std::size_t calls) {
  CAPTURE(mode);
  MutantLab lab(graphs, issue_iterations(6, calls, true));
  actions_checked += lab.action_count();
  REQUIRE(lab.open_conflicts().empty());
  std::map<std::string, std::vector<Edge>> groups;
  auto const check = [&](EdgeKind const& kind, std::vector<Edge> const& edges, Scope scope) {
    auto const effect = lab.without(edges, scope);
    Tally tally;
    if (effect.is_implied) {
      tally.implied = 1;
    } else if (effect.only_paces()) {
      tally.pacing = 1;
      if (!effect.found.empty()) {
        FAIL_CHECK(kind.name << ": verify minds what changes nothing: " << effect.first_text);
      }
    } else {
      auto const names_rule = std::any_of(kind.rules.begin(), kind.rules.end(), [&](Rule rule) {
        return effect.found.contains(rule);
      });
      (names_rule ? tally.caught : tally.missed) = 1;
      if (!names_rule) {
        FAIL_CHECK(kind.name << ": " << (effect.found.empty() ? "not caught" : effect.first_text));
      }
      for (auto const rule : effect.found) {
        if (kind.rules.contains(rule)) {
          ++caught_by_mode[mode][rule];
        }
      }
    }
    tally_by_edge[kind.name] += tally;
    return effect.is_implied;
  };
  std::map<std::string, EdgeKind> kinds;
  for (auto const role : all_graph_roles) {
    for (auto const& edge : edges_of(graphs.of(role))) {
      auto const kind = kind_of(graphs, edge);
      groups[kind.group].push_back(edge);
      auto& known = kinds[kind.group];
      known.name = "all: " + kind.group;
      known.rules.insert(kind.rules.begin(), kind.rules.end());
      if (!check(kind, {edge}, Scope::always)) {  // otherwise also implied in some iterations
        check(kind, {edge}, Scope::even_iterations);
        if (edge.list != EdgeList::waits) {  // `waits` bind one call in every iteration
          check(kind, {edge}, Scope::odd_iterations);
        }
      }
    }
  }
  for (auto const& [group, edges] : groups) {
    check(kinds[group], edges, Scope::always);
  }
}

}  // namespace

TEST_CASE("every mutant that can change a result or a queue is caught by the rule that it breaks") {
  RoundRobinSchedule const round_robin;
  PriorityTransferEngine const priority;
  OneLayerStages const layers;
  struct Mode {
    char const* name;
    EventProtocolOptions protocol;
    StepOptions step;
    bool blocks = false;
  };
  constexpr Mode modes[] = {
      {"synchronous", {0, 1, 1}, {}},
      {"synchronous, clips, reads master", {0, 1, 1}, {true, true, true}},
      {"two masters", {1, 2, 1}, {}},
      {"two masters, two gradients", {1, 2, 2}, {false, true, true}},
      {"P copies", {1, 1, 1}, {false, true, false}},
      {"P copies, clips", {1, 1, 1}, {true, false, false}},
      {"P copies, two gradients", {1, 1, 2}, {}},
      {"blocking, synchronous", {0, 1, 1}, {}, true},
      {"blocking, two masters", {1, 2, 1}, {}, true},
      {"blocking, P copies", {1, 1, 2}, {true, false, false}, true},
  };
  for (auto const& mode : modes) {
    auto const check_protocol = [&](auto const& protocol) {
      auto const check = [&](Training training, auto const& schedule, auto const& transfers) {
        training.step = mode.step;
        auto const graphs = plan_training(training, schedule, transfers, protocol, layers);
        check_mutants(mode.name, graphs, training.calls);
      };
      auto const sized = [](std::size_t devices,
                            std::size_t micro_batches,
                            std::size_t rounds,
                            ToyModelOptions const& model) {
        Training training;
        training.model = model;
        training.plan = {.devices = devices,
                         .micro_batches_per_round = micro_batches,
                         .rounds = rounds,
                         .device_memory = 1_GiB};
        return training;
      };
      check(sized(1, 3, 1, {.dense = 1}), round_robin, priority);
      check(sized(2, 2, 1, {.dense = 1, .tied = true}), round_robin, priority);
      check(sized(3, 2, 1, {.dense = 2, .frozen_dense = 1}), round_robin, priority);
      check(sized(2, 1, 2, {.dense = 1}), round_robin, priority);
      auto twice = sized(2, 1, 1, {.dense = 1, .frozen_input = true});
      twice.calls = 2;
      check(twice, round_robin, priority);
      check(sized(2, 2, 1, {.dense = 1}), LoopedBfs{}, priority);
      check(sized(1, 2, 1, {.dense = 1}), round_robin, CopyAtOnce{});
      check(sized(2, 2, 1, {.dense = 1}), round_robin, UnplannedTransfers{});
      auto offloading = sized(1, 3, 1, {.dense = 2});
      offloading.plan.offloaded_micro_batches = 2;
      check(offloading, round_robin, priority);
      auto partial = sized(2, 3, 1, {.dense = 2});
      partial.plan.save_levels = {{}, {1, 0, 2}, {0, 1, 1}};
      check(partial, round_robin, priority);
      auto overlapping = sized(1, 2, 2, {.dense = 2});
      overlapping.plan.overlaps_rounds = true;
      overlapping.plan.save_levels = {{}, {1, 2}, {2, 2}};
      check(overlapping, round_robin, priority);
      auto some_resident = sized(1, 3, 1, {.dense = 2});
      some_resident.plan.resident_boundaries = false;
      some_resident.plan.device_memory =
          plan_training(some_resident, round_robin, priority, protocol, layers)
              .stages.memory.bytes +
          1_KiB;
      some_resident.plan.resident_boundaries = true;
      check(some_resident, round_robin, priority);
      auto some_stay = sized(1, 1, 2, {.dense = 1, .tied = true});
      some_stay.plan.resident_boundaries = false;
      some_stay.plan.overlaps_rounds = true;
      some_stay.plan.device_memory =
          plan_training(some_stay, round_robin, priority, protocol, layers).stages.memory.bytes +
          256;
      some_stay.plan.resident_parameters = true;
      check(some_stay, round_robin, priority);
      auto all_stay = sized(2, 1, 2, {.dense = 1});
      all_stay.plan.resident_parameters = true;
      check(all_stay, round_robin, priority);
      auto peers = sized(2, 2, 1, {.dense = 1});
      peers.plan.resident_boundaries = false;
      peers.plan.reaches_peers = true;
      peers.plan.peer_boundaries = true;
      check(peers, round_robin, priority);
      auto ranks = sized(2, 1, 2, {.dense = 1, .tied = true});
      ranks.plan.ranks = 3;
      check(ranks, round_robin, priority);
      auto sharing = sized(2, 1, 1, {.dense = 1, .tied = true});
      sharing.plan.ranks = 3;
      sharing.shards = true;
      check(sharing, round_robin, priority);
      auto const check_tight = [&](Training training, auto const& partitioner) {
        training.step = mode.step;
        training.plan.device_memory =
            smallest_device_memory(training, round_robin, priority, protocol, partitioner);
        auto const graphs = plan_training(training, round_robin, priority, protocol, partitioner);
        check_mutants(mode.name, graphs, training.calls);
      };
      check_tight(sized(2, 2, 1, {.dense = 1}), Partitioner{});
      check_tight(sized(1, 2, 1, {.dense = 1}), OneStage{});
      auto all_offloaded = sized(2, 1, 2, {.dense = 2});
      all_offloaded.plan.offloaded_micro_batches = 1;
      check_tight(all_offloaded, Partitioner{});
      check_tight(sized(2, 1, 2, {.dense = 1, .tied = true}), OneStage{});
    };
    if (mode.blocks) {
      check_protocol(BlockingProtocol(mode.protocol));
    } else {
      check_protocol(LayerEventProtocol(mode.protocol));
    }
  }

  // Where no mutant of a rule is listed, other edges imply the rule; for example, uploads come
  // before gradients.
  using enum Rule;
  for (auto const& mode : modes) {
    CAPTURE(mode.name);
    auto const copies = mode.protocol.staleness == 1 && mode.protocol.master_copies == 1;
    auto const writes_late = mode.protocol.staleness == 1 && mode.protocol.gradient_buffers == 1;
    std::set<Rule> expected{copy_before_upload,
                            gradient_before_reader,
                            share_before_gather,
                            data,
                            buffer_reuse,
                            queueing};
    if (copies) {
      expected.insert(copy_between_steps);
    }
    if (copies && !mode.step.waits_for_all) {  // else gradients imply it
      expected.insert(upload_before_copy);
    }
    if (writes_late) {
      expected.insert(reader_before_gradient);
    }
    std::set<Rule> caught;
    for (auto const& [rule, count] : caught_by_mode[mode.name]) {
      caught.insert(rule);
    }
    CHECK(caught == expected);
  }

  std::cout << "mutants by mode and rule caught:\n";
  for (auto const& [mode, rules] : caught_by_mode) {
    for (auto const& [rule, count] : rules) {
      std::cout << "  " << std::setw(7) << count << "  " << mode << ": " << name_of(rule) << '\n';
    }
  }
  Tally all;
  for (auto const& [name, tally] : tally_by_edge) {
    all += tally;
  }
  std::cout << actions_checked << " actions; mutants: " << all.implied
            << " implied by other edges, " << all.pacing << " pacing, " << all.caught << " caught, "
            << all.missed << " missed\n"
            << "by edge: implied, pacing, caught, missed\n";
  for (auto const& [name, tally] : tally_by_edge) {
    std::cout << "  " << std::setw(7) << tally.implied << std::setw(7) << tally.pacing
              << std::setw(7) << tally.caught << std::setw(7) << tally.missed << "  " << name
              << '\n';
  }
}

}  // namespace mutants_verify_test
