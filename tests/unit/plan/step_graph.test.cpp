// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/plan/step_graph.hpp>

#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <support/policy_archetypes.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace step_graph_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// Four blocks: input, two dense layers, loss.
ParameterBlocks blocks(std::size_t frozen = 0) {
  return form_blocks(describe(toy_model({.dense = 2, .frozen_dense = frozen}), {2, 3}));
}

LayerEventProtocol const pointer_swap;
LayerEventProtocol const single({.master_copies = 1});
LayerEventProtocol const synchronous(0);

/// The blocks of the actions of \p kind, in issue order.
std::vector<std::size_t> blocks_of(ActionGraph const& graph, ActionKind kind) {
  std::vector<std::size_t> result;
  for (auto const& action : graph.actions) {
    if (action.kind == kind) {
      result.push_back(action.block.index());
    }
  }
  return result;
}

Action const& action_of(ActionGraph const& graph, ActionKind kind, std::size_t block) {
  auto const found =
      std::find_if(graph.actions.begin(), graph.actions.end(), [&](Action const& action) {
        return action.kind == kind && action.block == BlockId(block);
      });
  REQUIRE(found != graph.actions.end());
  return *found;
}

bool waits_for(Action const& action, BlockEvent event) {
  return std::find(action.block_waits.begin(), action.block_waits.end(), event) !=
         action.block_waits.end();
}

bool touches(std::vector<Buffer> const& buffers, BufferKind kind, std::size_t block) {
  return std::find(buffers.begin(), buffers.end(), Buffer{{kind, DeviceId::none(), block}, 0}) !=
         buffers.end();
}

using Numbers = std::vector<std::size_t>;

}  // namespace

TEST_CASE("when the step writes the master copy, it is one pass over each block") {
  for (auto const* protocol : {&pointer_swap, &synchronous}) {
    auto const graph = build_step_graph(blocks(), *protocol, {});
    CHECK(graph.actions.size() == 4);
    CHECK(blocks_of(graph, ActionKind::optimizer_step) == Numbers{3, 2, 1, 0});
    for (std::size_t b = 0; b < 4; ++b) {
      auto const& step = action_of(graph, ActionKind::optimizer_step, b);
      CHECK(touches(step.writes, BufferKind::master, b));
      CHECK(touches(step.writes, BufferKind::optimizer_copy, b));
      CHECK(touches(step.reads, BufferKind::gradient, b));
      CHECK(waits_for(step, {BlockId(b), BlockEventKind::upload}));
      CHECK(waits_for(step, {BlockId(b), BlockEventKind::gradient_write}));
      for (auto const event : {BlockEventKind::optimizer_step, BlockEventKind::parameter_copy}) {
        CHECK(graph.block_events.at({BlockId(b), event}).size() == 1);
      }
    }
  }
}

TEST_CASE("P copies belong to the step before, and come first, last block first") {
  auto const graph = build_step_graph(blocks(), single, {});
  CHECK(graph.actions.size() == 8);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(graph.actions[i].kind == ActionKind::copy_parameters);
    CHECK(graph.actions[i].block == BlockId(3 - i));
    CHECK(waits_for(graph.actions[i], {BlockId(3 - i), BlockEventKind::upload}));
    CHECK(waits_for(graph.actions[i], {BlockId(3 - i), BlockEventKind::optimizer_step}));
    // The copies have their own lane, so each update waits for the copy of its block in this graph.
    auto const& step = action_of(graph, ActionKind::optimizer_step, 3 - i);
    CHECK(step.waits == std::vector{ActionId(i)});
    CHECK_FALSE(touches(step.writes, BufferKind::master, 3 - i));
  }
}

TEST_CASE("only on request, updates wait for the gradients of all blocks") {
  for (auto const* protocol : {&pointer_swap, &single, &synchronous}) {
    for (bool const all : {false, true}) {
      auto const graph = build_step_graph(blocks(), *protocol, {.waits_for_all = all});
      auto const& first = action_of(graph, ActionKind::optimizer_step, 3);
      for (std::size_t b = 0; b < 4; ++b) {
        CHECK(waits_for(first, {BlockId(b), BlockEventKind::gradient_write}) == (all || b == 3));
      }
    }
  }
}

TEST_CASE(
    "where updates wait for all gradients, P copies do, and for all norms and earlier updates") {
  auto const graph =
      build_step_graph(blocks(), single, {.measures_gradients = true, .waits_for_all = true});
  std::size_t copies = 0;
  for (auto const& action : graph.actions) {
    if (action.kind == ActionKind::copy_parameters) {
      ++copies;
      for (std::size_t b = 0; b < 4; ++b) {
        CHECK(waits_for(action, {BlockId(b), BlockEventKind::gradient_write}));
        CHECK(waits_for(action, {BlockId(b), BlockEventKind::optimizer_step}));
      }
      CHECK(action.waits == std::vector{ActionId(3)});  // the last norm
    }
  }
  CHECK(copies == 4);
}

TEST_CASE("the gradient of every block is measured once, before any update") {
  for (auto const* protocol : {&pointer_swap, &single, &synchronous}) {
    auto const graph = build_step_graph(blocks(), *protocol, {.measures_gradients = true});
    CHECK(blocks_of(graph, ActionKind::gradient_norm) == Numbers{3, 2, 1, 0});
    std::size_t measured = 0;
    for (auto const& action : graph.actions) {
      if (action.kind == ActionKind::gradient_norm) {
        ++measured;
        auto const b = action.block.index();
        CHECK(action.block_waits ==
              std::vector{BlockEvent{BlockId(b), BlockEventKind::gradient_write}});
        CHECK(touches(action.writes, BufferKind::norm, b));
      } else if (action.kind == ActionKind::optimizer_step) {
        CHECK(measured == 4);
        for (std::size_t b = 0; b < 4; ++b) {
          CHECK(touches(action.reads, BufferKind::norm, b));
        }
      }
    }
    CHECK(measured == 4);
  }
}

TEST_CASE("with all gradients there, a synchronous step updates the first layers first") {
  auto const order = [](LayerEventProtocol const& protocol, bool measures) {
    return blocks_of(build_step_graph(blocks(), protocol, {.measures_gradients = measures}),
                     ActionKind::optimizer_step);
  };
  CHECK(order(synchronous, true) == Numbers{0, 1, 2, 3});
  CHECK(order(synchronous, false) == Numbers{3, 2, 1, 0});
  CHECK(order(single, true) == Numbers{3, 2, 1, 0});
}

TEST_CASE("an update without its own weights reads the master copy, in its declared mode") {
  for (bool const reads : {false, true}) {
    auto const graph = build_step_graph(blocks(), pointer_swap, {.reads_master = reads});
    for (std::size_t b = 0; b < 4; ++b) {
      auto const& step = action_of(graph, ActionKind::optimizer_step, b);
      CHECK(touches(step.reads, BufferKind::master, b) == reads);
    }
  }
}

TEST_CASE("an action says what it reads and writes") {
  auto const all =
      form_blocks(describe(toy_model({.types = {4, DType::bf16, DType::bf16}}), {2, 3}));
  auto const declared = all.blocks[0].master.bytes();
  auto const wide = all.blocks[0].gradient.bytes();
  auto const bytes = [&](LayerEventProtocol const& protocol, StepOptions options, ActionKind kind) {
    return action_of(build_step_graph(all, protocol, options), kind, 0).bytes;
  };
  auto const update = ActionKind::optimizer_step;
  StepOptions const fp32{.measures_gradients = true, .state_arrays = 2};
  CHECK(bytes(pointer_swap, fp32, update) == declared + 2 * wide + 4 * wide + declared);
  CHECK(bytes(pointer_swap, fp32, ActionKind::gradient_norm) == declared);
  CHECK(bytes(single, fp32, update) == declared + 2 * wide + 4 * wide);
  CHECK(bytes(single, fp32, ActionKind::copy_parameters) == wide + declared);
  CHECK(bytes(pointer_swap, {.reads_master = true, .state_arrays = 2}, update) == 7 * declared);
}

TEST_CASE("frozen blocks have no part in a step or a flush") {
  auto const some = blocks(1);
  CHECK(blocks_of(build_step_graph(some, single, {}), ActionKind::optimizer_step) ==
        Numbers{3, 2, 0});
  CHECK(blocks_of(build_flush_graph(some, single), ActionKind::copy_parameters) ==
        Numbers{0, 2, 3});
}

TEST_CASE(
    "with a barrier for the whole model, the first update waits for all data that it overwrites") {
  auto const graph = build_step_graph(blocks(), BlockingProtocol{0}, {});
  CHECK(graph.actions.size() == 4);
  for (std::size_t b = 0; b < 4; ++b) {
    CHECK(waits_for(graph.actions[0], {BlockId(b), BlockEventKind::upload}));
    CHECK(waits_for(graph.actions[0], {BlockId(b), BlockEventKind::gradient_write}));
  }
}

TEST_CASE("with a barrier for the whole model, all updates come after all P copies") {
  auto const graph = build_step_graph(blocks(), BlockingProtocol({.master_copies = 1}), {});
  CHECK(graph.actions.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    auto const& action = graph.actions[i];
    CHECK(action.kind == (i < 4 ? ActionKind::copy_parameters : ActionKind::optimizer_step));
    if (i >= 4) {
      CHECK(action.waits ==
            std::vector{ActionId(3)});  // the last copy; the lane implies the others
    }
  }
}

TEST_CASE("a step can be built for the smallest protocol") {
  auto const graph = build_step_graph(blocks(), EventProtocolArchetype{0}, {});
  CHECK(graph.actions.size() == 4);
  CHECK(graph.role == GraphRole::step);
}

TEST_CASE("when copies are separate actions, a flush copies every block and nothing else") {
  auto const graph = build_flush_graph(blocks(), single);
  CHECK(graph.role == GraphRole::flush);
  CHECK(blocks_of(graph, ActionKind::copy_parameters) == Numbers{0, 1, 2, 3});
  CHECK(graph.actions.size() == 4);
  for (auto const& action : graph.actions) {
    CHECK(waits_for(action, {action.block, BlockEventKind::optimizer_step}));
  }
  CHECK(build_flush_graph(blocks(), pointer_swap).actions.empty());
  CHECK(build_flush_graph(blocks(), synchronous).actions.empty());
}

TEST_CASE("the graphs of a step and a flush say how weights and gradients are held") {
  LayerEventProtocol const protocol({.staleness = 1, .master_copies = 1, .gradient_buffers = 2});
  for (auto const& graph :
       {build_step_graph(blocks(), protocol, {}), build_flush_graph(blocks(), protocol)}) {
    CHECK(graph.staleness == 1);
    CHECK(graph.master_copies == 1);
    CHECK(graph.gradient_buffers == 2);
  }
}

TEST_CASE("ranks that share blocks gather each behind what writes their own share, and its bytes") {
  auto shared = blocks(1);
  shard_blocks(shared, 1, std::vector(3, 1.0));
  for (auto const* protocol : {&pointer_swap, &single, &synchronous}) {
    auto const copies = protocol == &single;
    auto const graph = build_step_graph(shared, *protocol, {.state_arrays = 2});
    auto const writer = copies ? ActionKind::copy_parameters : ActionKind::optimizer_step;
    CHECK(blocks_of(graph, ActionKind::gather_weights) == Numbers{3, 2, 0});  // 1 is frozen
    for (std::size_t const b : {0, 2, 3}) {
      auto const& gather = action_of(graph, ActionKind::gather_weights, b);
      REQUIRE(gather.waits.size() == 1);
      auto const& waits = graph.actions[gather.waits.front().index()];
      CHECK(waits.kind == writer);
      CHECK(waits.block == BlockId(b));
      CHECK(gather.lane.kind == LaneKind::gather);
      CHECK(touches(gather.reads, BufferKind::master, b));
      CHECK(touches(gather.writes, BufferKind::gathered, b));
      auto const& block = shared.blocks[b];
      auto const own = block.own().bytes(block.master).size();
      CHECK(gather.received == block.master.bytes() - own);
      auto const wide = block.own().bytes(block.gradient).size();
      CHECK(action_of(graph, ActionKind::optimizer_step, b).bytes ==
            own + 6 * wide + (copies ? 0 : own));
      // Later graphs wait for the gather, too.
      auto const& events = graph.block_events.at({BlockId(b), BlockEventKind::parameter_copy});
      CHECK(events.size() == 2);
      if (copies) {
        CHECK(waits_for(waits, {BlockId(b), BlockEventKind::parameter_copy}));
      }
    }
  }
  CHECK(blocks_of(build_flush_graph(shared, single), ActionKind::gather_weights) ==
        Numbers{0, 2, 3});
}

}  // namespace step_graph_test
