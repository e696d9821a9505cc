// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/layer_event_protocol.hpp>
#include <roundpipe/plan/step_graph.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <support/own_policies.hpp>
#include <support/toy_model.hpp>
#include <vector>

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

ParameterBlocks blocks() { return form_blocks(describe(toy_model({.dense = 2}), {2, 3})); }

std::vector<ActionKind> kinds_of(ActionGraph const& graph, std::size_t block) {
  std::vector<ActionKind> kinds;
  for (auto const& action : graph.actions) {
    if (action.block == BlockId(block)) {
      kinds.push_back(action.kind);
    }
  }
  return kinds;
}

bool waits_for(Action const& action, BlockEvent event) {
  return std::find(action.block_waits.begin(), action.block_waits.end(), event) !=
         action.block_waits.end();
}

}  // namespace

TEST_CASE("a synchronous step updates and copies each block in turn") {
  auto const graph = build_step_graph(blocks(), LayerEventProtocol(0), {});
  CHECK(graph.actions.size() == 8);
  for (std::size_t b = 0; b < 4; ++b) {
    CHECK(kinds_of(graph, b) ==
          std::vector{ActionKind::optimizer_step, ActionKind::copy_parameters});
    CHECK(waits_for(graph.actions[2 * b + 1], {BlockId(b), BlockEventKind::upload}));
  }
}

TEST_CASE("with staleness 1 the copies of the step before come first, last block first") {
  auto const graph = build_step_graph(blocks(), LayerEventProtocol(1), {});
  CHECK(graph.actions.size() == 12);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(graph.actions[i].kind == ActionKind::copy_parameters);
    CHECK(graph.actions[i].block == BlockId(3 - i));
    CHECK(waits_for(graph.actions[i], {BlockId(3 - i), BlockEventKind::upload}));
    CHECK(waits_for(graph.actions[i], {BlockId(3 - i), BlockEventKind::optimizer_step}));
  }
}

TEST_CASE("no block is updated before the gradients of all blocks are there") {
  for (int const staleness : {0, 1}) {
    for (bool const clips : {false, true}) {
      for (bool const copies : {false, true}) {
        LayerEventProtocol const protocol({.staleness = staleness, .gradient_copy = copies});
        auto const graph = build_step_graph(blocks(), protocol, {clips});
        auto const first = std::find_if(
            graph.actions.begin(), graph.actions.end(), [](Action const& action) {
              return action.kind == ActionKind::optimizer_step;
            });
        REQUIRE(first != graph.actions.end());
        for (std::size_t b = 0; b < 4; ++b) {
          // The lane is a FIFO, so what an earlier action waits for counts.
          CHECK(std::any_of(graph.actions.begin(), first + 1, [&](Action const& action) {
            return waits_for(action, {BlockId(b), BlockEventKind::gradient_write});
          }));
        }
      }
    }
  }
}

TEST_CASE("clipping measures every block once before any update") {
  auto const graph = build_step_graph(blocks(), LayerEventProtocol(0), {true});
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(graph.actions[i].kind == ActionKind::gradient_norm);
  }
  CHECK(graph.actions.size() == 12);
}

TEST_CASE("a barrier for the whole model puts all copies behind all updates") {
  auto const graph = build_step_graph(blocks(), ModelBarrier{0}, {});
  CHECK(graph.actions.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(graph.actions[i].kind ==
          (i < 4 ? ActionKind::optimizer_step : ActionKind::copy_parameters));
  }
}

TEST_CASE("a flush copies every block and nothing else") {
  auto const graph = build_flush_graph(blocks(), LayerEventProtocol(1));
  CHECK(graph.actions.size() == 4);
  for (auto const& action : graph.actions) {
    CHECK(action.kind == ActionKind::copy_parameters);
    CHECK(waits_for(action, {action.block, BlockEventKind::optimizer_step}));
  }
}
