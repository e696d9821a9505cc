// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/graph/graph_sequence.hpp>

#include <support/hand_made_graph.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace graph_sequence_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

Made upload() {
  return Made(ActionKind::upload_parameters, LaneKind::parameter_up, 0)
      .reads(of_block(BufferKind::master));
}
Made update() {
  return Made(ActionKind::optimizer_step, LaneKind::optimizer)
      .reads(of_block(BufferKind::gradient))
      .writes(of_block(BufferKind::optimizer_copy));
}

/// Contents and copies of the accesses of \p action; reads come first.
std::vector<std::uint64_t> contents(UnrolledAction const& action) {
  std::vector<std::uint64_t> result;
  for (auto const& access : action.accesses) {
    result.push_back(access.content);
  }
  return result;
}
std::vector<std::size_t> entries(UnrolledAction const& action) {
  std::vector<std::size_t> result;
  for (auto const& access : action.accesses) {
    result.push_back(access.location.entry);
  }
  return result;
}

ActionGraph with(ActionGraph graph,
                 int staleness,
                 std::size_t master_copies,
                 std::size_t gradient_buffers = 1) {
  graph.staleness = staleness;
  graph.master_copies = master_copies;
  graph.gradient_buffers = gradient_buffers;
  return graph;
}

using Contents = std::vector<std::uint64_t>;
using Entries = std::vector<std::size_t>;

}  // namespace

TEST_CASE("actions are the same without accesses") {
  auto const graph = graph_of({upload(), update().after({0})});
  GraphSequence sequence(1);
  sequence.add(graph).add(graph);
  auto const with_accesses = sequence.unroll();
  auto const without = sequence.unroll(false);
  REQUIRE(without.size() == with_accesses.size());
  for (std::size_t i = 0; i < without.size(); ++i) {
    CHECK_FALSE(with_accesses[i].accesses.empty());
    CHECK(without[i].accesses.empty());
    CHECK(std::ranges::equal(without[i].waits, with_accesses[i].waits));
    CHECK(without[i].lane == with_accesses[i].lane);
  }
}

TEST_CASE("devices rotate by the advance of each graph") {
  auto graph = graph_of({Made(ActionKind::forward, LaneKind::compute, 0),
                         Made(ActionKind::forward, LaneKind::compute, 2).after({0})},
                        GraphRole::call,
                        3);
  graph.advance = 2;
  auto const actions = GraphSequence(3).add(graph).add(graph).add(graph).unroll();
  REQUIRE(actions.size() == 6);
  CHECK(actions[0].lane.device == DeviceId(0));
  CHECK(actions[1].lane.device == DeviceId(2));
  CHECK(actions[2].lane.device == DeviceId(2));
  CHECK(actions[3].lane.device == DeviceId(1));
  CHECK(actions[4].lane.device == DeviceId(1));
  CHECK(std::ranges::equal(actions[3].waits, std::vector<std::size_t>{2}));
  CHECK(actions[3].graph == 1);
  CHECK(actions[3].id == ActionId(1));
}

TEST_CASE("with staleness 1 uploads read the weights of the step before the last") {
  auto const call = with(graph_of({upload()}), 1, 2);
  auto const step =
      with(graph_of({update().writes(of_block(BufferKind::master))}, GraphRole::step), 1, 2);
  auto const actions =
      GraphSequence(1).add(call).add(step).add(call).add(step).add(call).add(step).unroll();
  REQUIRE(actions.size() == 6);
  CHECK(contents(actions[0]) == Contents{0});
  CHECK(contents(actions[2]) == Contents{0});
  CHECK(contents(actions[4]) == Contents{1});
  CHECK(entries(actions[4]) == Entries{1});          // step t is in copy t mod 2
  CHECK(contents(actions[3]) == Contents{2, 2, 2});  // gradient, optimizer copy, master copy
  CHECK(entries(actions[3]) == Entries{0, 0, 0});
  CHECK(entries(actions[5]) == Entries{0, 0, 1});
}

TEST_CASE("with staleness 0 uploads read the weights of the last step") {
  auto const call = with(graph_of({upload()}), 0, 1);
  auto const step = with(graph_of({update()}, GraphRole::step), 0, 1);
  auto const actions = GraphSequence(1).add(call).add(step).add(call).unroll();
  CHECK(contents(actions[0]) == Contents{0});
  CHECK(contents(actions[2]) == Contents{1});
  CHECK(entries(actions[2]) == Entries{0});
}

TEST_CASE("a P copy copies the result of the step before its own") {
  Made copy(ActionKind::copy_parameters, LaneKind::parameter_copy);
  copy.reads(of_block(BufferKind::optimizer_copy)).writes(of_block(BufferKind::master));
  auto const step = with(graph_of({copy, update()}, GraphRole::step), 1, 1);
  auto const actions = GraphSequence(1).add(step).add(step).unroll();
  CHECK(contents(actions[0]) == Contents{0, 0});
  CHECK(contents(actions[1]) == Contents{1, 1});
  CHECK(contents(actions[2]) == Contents{1, 1});
  CHECK(contents(actions[3]) == Contents{2, 2});
}

TEST_CASE("evaluations read the newest weights of a master copy, and after a flush calls do, too") {
  for (std::size_t const masters : {1, 2}) {
    auto const call = with(graph_of({upload()}), 1, masters);
    auto const evaluation = with(graph_of({upload()}, GraphRole::evaluation), 1, masters);
    auto const step = with(graph_of({update()}, GraphRole::step), 1, masters);
    auto const flush = graph_of({}, GraphRole::flush);
    auto const actions = GraphSequence(1)
                             .add(step)
                             .synchronize()
                             .add(evaluation)
                             .add(call)
                             .add(flush)
                             .synchronize()
                             .add(call)
                             .add(step)
                             .add(call)
                             .unroll();
    CHECK(actions[0].epoch == 0);
    CHECK(actions[1].epoch == 1);
    CHECK(contents(actions[1]) == Contents{masters - 1});
    CHECK(contents(actions[2]) == Contents{0});
    CHECK(actions[3].epoch == 2);
    CHECK(contents(actions[3]) == Contents{1});
    CHECK(contents(actions[5]) == Contents{1});
  }
}

TEST_CASE("with two gradient buffers iteration t writes, and step t reads, buffer t mod 2") {
  Made down(ActionKind::download_gradients, LaneKind::gradient_down, 0);
  down.writes(of_block(BufferKind::gradient));
  auto const call = with(graph_of({down}), 1, 2, 2);
  auto const step = with(graph_of({update()}, GraphRole::step), 1, 2, 2);
  auto const actions = GraphSequence(1).add(call).add(step).add(call).add(call).add(step).unroll();
  CHECK(entries(actions[0]) == Entries{1});
  CHECK(entries(actions[1])[0] == 1);
  CHECK(entries(actions[2]) == Entries{0});
  CHECK(entries(actions[3]) == Entries{0});
  CHECK(entries(actions[4])[0] == 0);
  CHECK(contents(actions[3]) == Contents{2});
}

TEST_CASE("rings continue across graphs, each on its physical device") {
  Ring const ring{BufferKind::parameters, DeviceId(0), 0};
  auto call = graph_of({upload().writes({ring, 0}), upload().writes({ring, 1})});
  add_ring(call, ring, 3, {{ActionId(0)}, {ActionId(1)}});
  call.advance = 1;
  auto const actions = GraphSequence(2).add(call).add(call).add(call).unroll();
  auto const ring_of = [&](std::size_t i) { return actions[i].accesses[1]; };
  CHECK(ring_of(0).content == 0);
  CHECK(ring_of(1).content == 1);
  CHECK(ring_of(2).content == 0);
  CHECK(ring_of(2).location.ring.device == DeviceId(1));
  CHECK(ring_of(4).content == 2);
  CHECK(ring_of(4).location.entry == 2);
  CHECK(ring_of(5).location.entry == 0);
  CHECK(ring_of(5).location.ring.device == DeviceId(0));
}

TEST_CASE("waits for earlier graphs become action numbers") {
  auto call = graph_of({upload().after(BlockEventKind::optimizer_step)});
  auto step = graph_of({update(), update()}, GraphRole::step);
  step.block_events[{BlockId(0), BlockEventKind::optimizer_step}] = {ActionId(1)};
  auto const actions = GraphSequence(1).add(call).add(step).add(call).unroll();
  CHECK(actions[0].waits.empty());
  CHECK(std::ranges::equal(actions[3].waits, std::vector<std::size_t>{2}));
}

TEST_CASE("a wait without a matching action points to the waiting action itself") {
  auto graph = graph_of({upload(), upload()});
  graph.actions[1].waits = {ActionId(5), ActionId::none()};
  auto const actions = GraphSequence(1).add(graph).unroll();
  CHECK(std::ranges::equal(actions[1].waits, std::vector<std::size_t>{1, 1}));
}

TEST_CASE("the name of an unrolled action has its graph, its kind and its physical device") {
  auto graph = graph_of({Made(ActionKind::forward, LaneKind::compute, 0)});
  graph.advance = 1;
  auto const step = graph_of({update()}, GraphRole::step);
  auto const actions = GraphSequence(2).add(graph).add(graph).add(step).unroll();
  CHECK(to_string(actions[1]) == "graph 1: forward, device 1");
  CHECK(to_string(actions[2]) == "graph 2: optimizer step of block 0");
}

TEST_CASE("a training sequence has every role, and evaluations between steps and between calls") {
  auto const call = graph_of({upload()});
  auto const step = with(graph_of({update()}, GraphRole::step), 1, 1);
  auto const flush = graph_of({}, GraphRole::flush);
  auto const evaluation = with(graph_of({upload()}, GraphRole::evaluation), 1, 1);
  auto const actions = training_sequence({call, step, flush, evaluation, 2}, 1).unroll();
  std::vector<GraphRole> roles;
  for (auto const& action : actions) {
    roles.push_back(action.source->role);
  }
  auto const c = GraphRole::call;
  auto const s = GraphRole::step;
  auto const e = GraphRole::evaluation;
  CHECK(roles ==
        std::vector{c, c, s, e, e, c, c, s, c, c, s, e, e, c, c, s, c, c, s, c, e, e, c, s});
  CHECK(actions[3].epoch == 1);
  CHECK(contents(actions[3]) == Contents{0});  // as the next call
  CHECK(actions[11].epoch == 4);
  CHECK(contents(actions[11]) == Contents{3});  // behind the flush
  CHECK(actions[20].epoch == 5);
  CHECK(contents(actions[20]) == Contents{4});
  CHECK(contents(actions[22]) == Contents{4});
}

}  // namespace graph_sequence_test
