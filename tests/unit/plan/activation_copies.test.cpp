// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/activation_copies.hpp>

#include <roundpipe/plan/stage_compute.hpp>
#include <support/error_of.hpp>
#include <support/small_call.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace activation_copies_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// All activations and all compute of a call.
void add_all(detail::CallContext& call) {
  detail::ActivationCopies copies(call);
  detail::SaveCopies saves(call);
  detail::StageCompute compute(call, saves);
  for (std::size_t s = 0; s < call.slots.size(); ++s) {
    for (std::size_t m = 0; m < call.micro_batches_per_round(); ++m) {
      copies.add_up(SlotId(s), m);
      compute.add(SlotId(s), m, [&](Pass const&, bool completes_entry) {
        if (completes_entry) {
          copies.add_down(SlotId(s), m);
        }
      });
    }
  }
}

}  // namespace

TEST_CASE("a device first takes as many activations as it holds, then one in each window") {
  constexpr std::size_t micro_batches = 4;
  for (std::size_t in_flight = 1; in_flight <= 5; ++in_flight) {
    SmallCall const small(1, micro_batches, 1, {2, 2, in_flight});
    auto const input = small.input();
    detail::CallContext call(input);
    detail::ActivationCopies copies(call);
    for (std::size_t w = 0; w < micro_batches; ++w) {
      copies.add_up(SlotId(0), w);
      auto const& up = call.work[0].activation_up;
      auto const added = std::ranges::count_if(up, [](ActionId id) { return id.valid(); });
      CHECK(static_cast<std::size_t>(added) == std::min(w + in_flight, micro_batches));
    }
  }
}

TEST_CASE("an activation goes up when the compute that makes room for it is done") {
  SmallCall const small(1, 3);
  auto const input = small.input();
  detail::CallContext call(input);
  add_all(call);
  for (std::size_t s = 0; s < call.slots.size(); ++s) {
    for (std::size_t m = 0; m < 3; ++m) {
      auto const room = call.compute_before(SlotId(s), m, 2);
      for (auto const id : {call.work[s].activation_up[m], call.work[s].gradient_up[m]}) {
        if (id.valid() && room.valid()) {
          CHECK(std::ranges::count(call.graph[id].waits, room) == 1);
        }
      }
    }
  }
}

TEST_CASE("the reader of a boundary waits for the copy that brought the boundary to the host") {
  SmallCall const small(2, 2, 2);
  auto const input = small.input();
  detail::CallContext call(input);
  add_all(call);
  auto const graph = std::move(call.graph).finish(0);
  std::size_t reads = 0;
  for (auto const& action : graph.actions) {
    for (auto const& buffer : action.reads) {
      auto const kind = buffer.ring.kind;
      if (kind == BufferKind::checkpoint || kind == BufferKind::boundary_gradient) {
        auto const writer = graph.rings.at(buffer.ring).users.at(buffer.sequence).front();
        CHECK(graph.actions[writer.index()].kind == ActionKind::download_activation);
        CHECK(std::ranges::count(action.waits, writer) == 1);
        ++reads;
      }
    }
  }
  // For each micro-batch: three checkpoints (stages 1 to 3) and two gradients (stages 3 and 4).
  CHECK(reads == 2 * 2 * (3 + 2));
}

TEST_CASE("only the fused stage sends losses down, one micro-batch at a time") {
  SmallCall const small(1, 3);
  auto const input = small.input();
  detail::CallContext call(input);
  add_all(call);
  std::vector<std::size_t> losses;
  for (auto const& action : actions_of(std::move(call), ActionKind::download_activation)) {
    if (auto const* loss = find_buffer(action, BufferKind::loss)) {
      CHECK(action.stage == StageId(2));
      losses.push_back(loss->ring.index);
    }
  }
  CHECK(losses == std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE("a stage with rounds out of order is refused") {
  SmallCall const small(1, 1, 2);
  auto const input = small.input();
  detail::CallContext call(input);
  detail::ActivationCopies copies(call);
  detail::SaveCopies saves(call);
  detail::StageCompute compute(call, saves);
  SlotId const later(SmallCall::stages);  // the second round of the first stage
  REQUIRE(call.slot(later).round == RoundId(1));
  for (auto const slot : {later, SlotId(0)}) {
    copies.add_up(slot, 0);
    compute.add(slot, 0);
    if (slot == later) {
      copies.add_down(slot, 0);
    } else {
      CHECK(error_of([&] { copies.add_down(slot, 0); }).code() == Errc::unsupported);
    }
  }
}

}  // namespace activation_copies_test
