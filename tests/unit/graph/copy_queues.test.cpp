// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/graph/copy_queues.hpp>

#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/sequence_order.hpp>
#include <support/hand_made_graph.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace copy_queues_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

Pairs overtaken(ActionGraph const& graph) {
  auto const actions = GraphSequence(2).add(graph).unroll();
  return overtaken_copies(actions, SequenceOrder(actions));
}

/// The copy of the activations of a micro-batch of slot 1.
Made copied(ActionKind kind, LaneKind lane, std::size_t device, std::size_t micro_batch) {
  return Made(kind, lane, device).in_slot(1, micro_batch);
}
Made down(std::size_t device, std::size_t micro_batch) {
  return copied(ActionKind::download_activation, LaneKind::activation_down, device, micro_batch);
}
Made up(std::size_t device, std::size_t micro_batch) {
  return copied(ActionKind::upload_activation, LaneKind::activation_up, device, micro_batch);
}
/// Chunks of a slot behind slot 1, in a window of slot 1.
Made gradients(std::size_t window) {
  return Made(ActionKind::download_gradients, LaneKind::gradient_down, 0).gated(1, window);
}
Made parameters(std::size_t window) {
  return Made(ActionKind::upload_parameters, LaneKind::parameter_up, 0).gated(1, window);
}

}  // namespace

TEST_CASE("activations that come down before a chunk's window go before the chunk") {
  CHECK(overtaken(graph_of({down(0, 0), down(0, 1), gradients(0)})).empty());
  CHECK(overtaken(graph_of({down(0, 0), down(0, 1), gradients(1)})) == Pairs{{0, 2}});
  CHECK(overtaken(graph_of({down(0, 0), down(0, 1), gradients(1).after({0})})).empty());
  CHECK(overtaken(graph_of({down(0, 0), down(0, 1), gradients(2).after({0})})) == Pairs{{1, 2}});
}

TEST_CASE("activations go up before a chunk of the window in which they are due") {
  CHECK(overtaken(graph_of({up(0, 0), up(0, 1), parameters(0)})) == Pairs{{0, 2}});
  CHECK(overtaken(graph_of({up(0, 0), up(0, 1), parameters(0).after({0})})).empty());
  // With two entries, the next micro-batch's activations go up in the same window.
  auto graph = graph_of({up(0, 0), up(0, 1), parameters(0).after({0})});
  add_ring(graph, {BufferKind::activations_in, DeviceId(0), 0}, 2, {});
  CHECK(overtaken(graph) == Pairs{{1, 2}});
}

TEST_CASE("copies of other devices or directions, and chunks without a gate, are no matter") {
  CHECK(overtaken(graph_of({down(1, 0), gradients(1)})).empty());
  CHECK(overtaken(graph_of({up(0, 0), gradients(1)})).empty());
  CHECK(overtaken(graph_of({down(0, 0), parameters(1)})).empty());
  auto chunk = gradients(1);
  chunk.action.gated = false;
  CHECK(overtaken(graph_of({down(0, 0), chunk})).empty());
}

}  // namespace copy_queues_test
