// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/memory/host_rings.hpp>

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace host_rings_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr std::size_t micro_batches = 2;
constexpr std::size_t rounds = 5;

/// Eight layers, the first of which saves nothing, and the loss. Forward stages of two layers;
/// backward stages, too, but for the fused one, which is the loss.
struct Planned {
  explicit Planned(WorkingSet const& set) {
    auto const blocks = form_blocks(model);
    auto const is_checkpoint = [](std::size_t boundary) { return boundary % 2 == 1; };
    auto const add = [&](StageKind kind, LayerRange range) {
      stages.push_back(lay_out_stage(model, blocks, kind, range, is_checkpoint, set));
    };
    for (std::size_t first = 0; first < 8; first += 2) {
      add(StageKind::forward, {first, 2});
    }
    add(StageKind::fused, {8, 1});
    for (std::size_t first = 8; first > 0; first -= 2) {
      add(StageKind::backward, {first - 2, 2});
    }
    rings = HostRings(stages, micro_batches, rounds);
  }

  ModelDescription model = toy();
  std::vector<StageLayout> stages;
  HostRings rings;

  static ModelDescription toy() { return describe(toy_model({.dense = 7}), {2, 3}); }
};

/// Everything is kept of every layer.
WorkingSet everything(bool overlaps) {
  auto set = spread_saves(Planned::toy(), micro_batches, micro_batches);
  set.set_overlaps_rounds(overlaps);
  return set;
}

std::size_t ring_of(
    HostRings const& rings, BufferKind kind, std::size_t layer, std::size_t m, std::size_t round) {
  return rings.ring(kind, layer, MicroBatchId(m), RoundId(round)).index;
}

template <class F>
bool refused(F const& f) {
  return error_of(f).code() == Errc::invalid_argument;
}

}  // namespace

TEST_CASE("boundaries between stages have two entries apart") {
  Planned const plan{WorkingSet{}};
  auto const kind = BufferKind::checkpoint;
  CHECK(plan.rings.entries(kind) == 2);
  CHECK(plan.rings.entry_bytes(kind).size() == 4 * micro_batches);
  std::set<std::size_t> used;
  for (std::size_t boundary = 1; boundary < 8; boundary += 2) {
    for (std::size_t m = 0; m < micro_batches; ++m) {
      auto const ring = plan.rings.ring(kind, boundary, MicroBatchId(m), RoundId(0));
      CHECK(ring == plan.rings.ring(kind, boundary, MicroBatchId(m), RoundId(4)));
      CHECK(plan.rings.layer_of(ring, RoundId(3)) == boundary);
      used.insert(ring.index);
    }
  }
  CHECK(used.size() == 4 * micro_batches);
  auto const boundary = align_up(plan.model.layers[1].boundary.bytes());
  CHECK(plan.rings.bytes(kind) == 2 * 4 * micro_batches * boundary);
  CHECK(plan.rings.bytes(BufferKind::offloaded_saves) == 0);
}

TEST_CASE("the gradients of all boundaries of a micro-batch share four entries") {
  Planned const plan{WorkingSet{}};
  auto const kind = BufferKind::boundary_gradient;
  CHECK(plan.rings.entries(kind) == 4);
  for (std::size_t boundary = 1; boundary < 8; boundary += 2) {
    for (std::size_t m = 0; m < micro_batches; ++m) {
      CHECK(ring_of(plan.rings, kind, boundary, m, 4) == m);
    }
  }
  auto const most = align_up(plan.model.layers[1].boundary.bytes());
  CHECK(plan.rings.bytes(kind) == 4 * micro_batches * most);
  CHECK(refused([&] { (void)plan.rings.layer_of({kind, DeviceId::none(), 0}, RoundId(0)); }));
  CHECK(refused([&] { (void)ring_of(plan.rings, kind, 0, 0, 0); }));  // within a stage

  std::vector<StageLayout> unequal;
  for (std::size_t const i : {2, 1, 0}) {
    StageLayout stage;
    stage.kind = StageKind::backward;
    stage.range = {i, 1};
    stage.layers.resize(1);
    if (i > 0) {  // the larger gradient comes first
      stage.layers.front().input_gradient = Place{Area::activations_out, 0, 512 * i};
    }
    unequal.push_back(std::move(stage));
  }
  CHECK(HostRings(unequal, 1, 1).bytes(kind) == 4 * 1024);
  unequal.erase(unequal.begin());
  CHECK(HostRings(unequal, 1, 1).bytes(kind) == 2 * 512);
}

TEST_CASE("the host has no ring for what stays on a device") {
  for (auto const& set : {WorkingSet{}, everything(false)}) {
    Planned const plan(set);
    ResidentBoundaries const resident{{BufferKind::checkpoint, 3, 1},
                                      {BufferKind::boundary_gradient, 5, 0}};
    HostRings const rings(plan.stages, micro_batches, rounds, resident);
    auto const boundary = align_up(plan.model.layers[3].boundary.bytes());
    CHECK(plan.rings.bytes(BufferKind::checkpoint) - rings.bytes(BufferKind::checkpoint) ==
          rings.entries(BufferKind::checkpoint) * boundary);
    CHECK(refused([&] { (void)ring_of(rings, BufferKind::checkpoint, 3, 1, 2); }));
    CHECK(refused([&] { (void)ring_of(rings, BufferKind::boundary_gradient, 5, 0, 2); }));
    CHECK(ring_of(rings, BufferKind::boundary_gradient, 5, 1, 2) == 1);
    CHECK(ring_of(rings, BufferKind::boundary_gradient, 3, 0, 2) == 0);
    auto all = resident;
    for (std::size_t layer = 1; layer < 8; layer += 2) {
      all.insert({BufferKind::boundary_gradient, layer, 0});
    }
    CHECK(HostRings(plan.stages, micro_batches, rounds, all).bytes(BufferKind::boundary_gradient) ==
          4 * boundary);  // of micro-batch 1
  }
}

TEST_CASE("no ring holds two things at once, and the host holds no more than what is alive") {
  for (bool const overlaps : {false, true}) {
    Planned const plan(everything(overlaps));
    // Behind backward stage j of a round, forward stage j - 1 of the next begins: 4 stages of 2
    // layers each way, and the fused stage, which frees nothing but its input.
    for (auto const kind : {BufferKind::checkpoint, BufferKind::offloaded_saves}) {
      CHECK(plan.rings.entries(kind) == 1);
      std::size_t most = 0;
      std::set<std::size_t> alive;
      auto const is_kept = [&](std::size_t layer) {
        return kind == BufferKind::checkpoint || layer > 0;
      };
      auto const hold = [&](std::size_t layer, std::size_t round) {
        if (!is_kept(layer)) {
          return;
        }
        for (std::size_t m = 0; m < micro_batches; ++m) {
          auto const ring = plan.rings.ring(kind, layer, MicroBatchId(m), RoundId(round));
          CHECK(alive.insert(ring.index).second);
          CHECK(plan.rings.layer_of(ring, RoundId(round)) == layer);
        }
        most = std::max(most, alive.size());
      };
      auto const release = [&](std::size_t layer, std::size_t round) {
        for (std::size_t m = 0; m < micro_batches; ++m) {
          CHECK(alive.erase(ring_of(plan.rings, kind, layer, m, round)) == 1);
        }
      };
      auto const backward = [&](std::size_t stage, std::size_t round) {
        // A stage reads its layers' saves, and the boundaries before these layers.
        auto const lag = kind == BufferKind::checkpoint ? std::size_t{1} : 0;
        for (std::size_t layer = 0; layer < 8; ++layer) {
          auto const reader = layer + lag == 8 ? 0 : 4 - (layer + lag) / 2;
          if (reader == stage && is_kept(layer)) {
            release(layer, round);
          }
        }
      };
      for (std::size_t round = 0; round < rounds; ++round) {
        std::size_t ended = 0;
        for (std::size_t i = 0; i < 4; ++i) {
          // Turns: (fused), (6 and 7; 0 and 1), (4 and 5; 2 and 3), ...
          for (auto const until = overlaps ? i + 1 : 5; round > 0 && ended < until; ++ended) {
            backward(ended, round - 1);
          }
          hold(2 * i, round);
          hold(2 * i + 1, round);
        }
        for (; round > 0 && ended < 5; ++ended) {
          backward(ended, round - 1);
        }
      }
      // One round, and with rounds that overlap also the turn that is under way.
      auto const layers = overlaps ? std::size_t{10} : 8;
      CHECK(most <= layers * micro_batches);
      CHECK(plan.rings.entry_bytes(kind).size() == most);
    }
  }
}

TEST_CASE("rings of saves differ by size, and a first round that keeps less takes fewer") {
  auto const model = Planned::toy();
  auto const& levels = model.layers[1].save_levels;
  REQUIRE(levels.size() == 3);
  auto set = keep_levels(model, {{}, {1, 2}, {0, 1}}, micro_batches);
  set.set_round(0, keep_levels(model, {{}, {0, 1}}, micro_batches));
  Planned const plan(set);
  auto const kind = BufferKind::offloaded_saves;
  CHECK(plan.rings.entry_bytes(kind)[ring_of(plan.rings, kind, 1, 1, 0)] == levels[2]);
  CHECK(refused([&] { (void)ring_of(plan.rings, kind, 1, 0, 0); }));
  CHECK(refused([&] { (void)ring_of(plan.rings, kind, 7, 0, 1); }));
  CHECK(refused([&] { (void)ring_of(plan.rings, kind, 1, 0, rounds); }));
  CHECK(refused([&] { (void)plan.rings.layer_of({kind, DeviceId::none(), 3}, RoundId(1)); }));
  CHECK(plan.rings.entry_bytes(kind)[ring_of(plan.rings, kind, 1, 0, 1)] == levels[1]);
  CHECK(plan.rings.entry_bytes(kind)[ring_of(plan.rings, kind, 2, 1, 1)] == levels[1]);
  CHECK(plan.rings.bytes(kind) == 2 * align_up(levels[1]) + align_up(levels[2]));
}

}  // namespace host_rings_test
