// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/graph/verify.hpp>
#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/explorer.hpp>
#include <support/hand_made_graph.hpp>
#include <support/mutants.hpp>
#include <support/own_policies.hpp>
#include <support/training_graphs.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mutants_explorer_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr std::size_t iterations = 3;

struct Mode {
  char const* name;
  EventProtocolOptions protocol;
  StepOptions step;
  bool blocks = false;
};
constexpr Mode modes[] = {
    {"synchronous", {0, 1, 1}, {}},
    {"two masters", {1, 2, 1}, {}},
    {"two masters, two gradients", {1, 2, 2}, {}},
    {"P copies", {1, 1, 1}, {}},
    {"P copies, clips", {1, 1, 1}, {.measures_gradients = true}},
    {"P copies, two gradients", {1, 1, 2}, {}},
    {"blocking, synchronous", {0, 1, 1}, {}, true},
    {"blocking, two masters", {1, 2, 1}, {}, true},
    {"blocking, P copies", {1, 1, 1}, {}, true},
};

/// Two layers on two devices. With \p tied, their matrices are one block.
TrainingGraphs graphs_of(Mode const& mode, std::size_t micro_batches, bool tied) {
  Training training;
  training.model = {.dense = 0, .tied = tied};
  training.plan = {
      .devices = 2, .micro_batches_per_round = micro_batches, .rounds = 1, .device_memory = 1_GiB};
  training.step = mode.step;
  auto const plan = [&](auto const& protocol) {
    return plan_training(
        training, RoundRobinSchedule{}, PriorityTransferEngine{}, protocol, OneLayerStages{});
  };
  return mode.blocks ? plan(BlockingProtocol(mode.protocol))
                     : plan(LayerEventProtocol(mode.protocol));
}

Exploration explore(GraphSequence const& sequence, std::size_t most) {
  auto const actions = sequence.unroll();
  return Explorer(actions).explore(most);
}

}  // namespace

TEST_CASE("the explorer visits each order of two actions' beginnings and ends") {
  auto const graph = graph_of({Made(ActionKind::forward, LaneKind::compute, 0),
                               Made(ActionKind::forward, LaneKind::compute, 1)});
  auto const result = explore(GraphSequence(2).add(graph), 100);
  CHECK(result.states == 9);
  CHECK(result.interleavings == 6);
  CHECK(result.is_exhaustive);
  CHECK_FALSE(explore(GraphSequence(2).add(graph), 8).is_exhaustive);
}

TEST_CASE("the explorer finds the cycle of a mutant with a reversed wait") {
  auto const circle = graph_of({Made(ActionKind::forward, LaneKind::compute, 0).after({1}),
                                Made(ActionKind::forward, LaneKind::compute, 1).after({0})});
  CHECK(explore(GraphSequence(2).add(circle), 100).deadlocks);
}

TEST_CASE("the explorer finds torn reads, early reads and reordered writes") {
  auto const buffer = of_block(BufferKind::optimizer_copy);
  auto const differs = [&](Made first, Made second, bool waits) {
    if (waits) {
      second.after({0});
    }
    auto const graph = graph_of({first, second}, GraphRole::flush);
    return explore(GraphSequence(2).add(graph), 1000).differs;
  };
  // Kind and lane do not matter: reads and writes define the effect.
  Made const writer = Made(ActionKind::copy_parameters, LaneKind::parameter_copy).writes(buffer);
  Made const other_writer = Made(ActionKind::forward, LaneKind::compute, 1).writes(buffer);
  Made const reader = Made(ActionKind::forward, LaneKind::compute, 0).reads(buffer);
  for (auto const& [first, second] :
       {std::pair(writer, reader), std::pair(reader, writer), std::pair(writer, other_writer)}) {
    CHECK_FALSE(differs(first, second, true));
    CHECK(differs(first, second, false));
  }
  CHECK_FALSE(differs(reader, reader, false));
}

TEST_CASE("every interleaving of the original graphs ends like the issue order") {
  constexpr std::size_t most = 150'000;  // states; one micro-batch has fewer
  std::size_t states = 0;
  double interleavings = 0;
  for (auto const& mode : modes) {
    for (bool const tied : {false, true}) {
      for (std::size_t micro_batches = 1; micro_batches <= 2; ++micro_batches) {
        CAPTURE(mode.name);
        CAPTURE(micro_batches);
        auto const graphs = graphs_of(mode, micro_batches, tied);
        auto const result =
            explore(sequence_of(graphs, issue_iterations(iterations, 1, false)), most);
        CHECK_FALSE(result.differs);
        CHECK_FALSE(result.deadlocks);
        if (micro_batches == 1) {
          CHECK(result.is_exhaustive);
        }
        states += result.states;
        interleavings += result.interleavings;
      }
    }
  }
  std::cout << "as built: " << states << " states, " << interleavings << " interleavings\n";
}

TEST_CASE("each mutant that verify finds unsafe has an interleaving with other contents") {
  std::size_t states = 0;
  std::size_t mutants = 0;
  std::size_t other_weights = 0;
  std::size_t harmless = 0;
  for (auto const& mode : modes) {
    CAPTURE(mode.name);
    std::map<Rule, std::size_t> shown;  // for each rule: mutants that end with other contents
    for (bool const tied : {false, true}) {
      auto const graphs = graphs_of(mode, 1, tied);
      auto const issues = issue_iterations(iterations, 1, false);
      MutantLab lab(graphs, issues);
      std::map<std::string, std::pair<EdgeKind, std::vector<Edge>>> groups;
      auto const check = [&](EdgeKind const& kind, std::span<Edge const> edges) {
        auto const effect = lab.without(edges, Scope::always);
        if (effect.is_implied) {
          return;
        }
        auto mutant = graphs;
        for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
          drop(mutant.of(edge->graph), *edge);
        }
        auto const result = explore(sequence_of(mutant, issues), 1'000'000);
        ++mutants;
        states += result.states;
        CHECK_FALSE(result.deadlocks);
        CHECK((result.differs || result.is_exhaustive));
        if (result.differs != effect.changes_result) {
          FAIL_CHECK(kind.name << ": brute force says " << effect.changes_result << ", explored "
                               << result.differs << " " << result.first_text
                               << "; verify: " << effect.first_text);
        }
        harmless += result.differs ? 0 : 1;
        other_weights += result.ends_in_other_weights ? 1 : 0;
        for (auto const rule : kind.rules) {
          shown[rule] += result.differs && effect.found.contains(rule) ? 1 : 0;
        }
      };
      for (auto const role : all_graph_roles) {
        for (auto const& edge : edges_of(graphs.of(role))) {
          auto const kind = kind_of(graphs, edge);
          auto& group = groups[kind.group];
          group.first.name = "all: " + kind.group;
          group.first.rules.insert(kind.rules.begin(), kind.rules.end());
          group.second.push_back(edge);
          check(kind, std::span(&edge, 1));
        }
      }
      for (auto const& [name, group] : groups) {
        check(group.first, group.second);
      }
    }
    // No mutant of the other rules changes a result here: other edges imply those rules.
    using enum Rule;
    std::set<Rule> expected{copy_before_upload, gradient_before_reader, data, buffer_reuse};
    if (mode.protocol.staleness == 1 && mode.protocol.master_copies == 1) {
      expected.insert({upload_before_copy, copy_between_steps});
    }
    if (mode.protocol.staleness == 1 && mode.protocol.gradient_buffers == 1) {
      expected.insert(reader_before_gradient);
    }
    for (auto const rule : expected) {
      CAPTURE(name_of(rule));
      CHECK(shown[rule] > 0);
      std::cout << mode.name << ": " << shown[rule] << " of " << name_of(rule) << '\n';
    }
  }
  std::cout << mutants << " mutants, " << harmless << " of them harmless, " << other_weights
            << " end in other weights; " << states << " states\n";
}

}  // namespace mutants_explorer_test
