// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/model/working_set.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <queue>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE HostRings::HostRings(std::span<StageLayout const> stages,
                                      std::size_t micro_batches_per_round,
                                      std::size_t rounds,
                                      ResidentBoundaries const& resident)
    : micro_batches_(micro_batches_per_round) {
  for (auto const kind : kinds) {
    pools_[kind];
  }
  ScheduleShape shape{.micro_batches_per_round = micro_batches_per_round, .rounds = rounds};
  std::vector<std::size_t> readers;  // by layer: the backward stage
  for (auto const& stage : stages) {
    if (!stage.has_backward()) {
      ++shape.forward_stages;
      continue;
    }
    readers.resize(std::max(readers.size(), stage.range.end()));
    std::fill_n(readers.begin() + static_cast<std::ptrdiff_t>(stage.range.first),
                stage.range.count,
                shape.backward_stages++);
    if (auto const& gradient = stage.layers.front().input_gradient;
        gradient.area == Area::activations_out) {
      take_turns(stage.range.first - 1, gradient.bytes, resident);
    }
  }
  std::vector<std::vector<Handed>> checkpoints(shape.forward_stages);
  std::vector<std::vector<Handed>> saves(shape.forward_stages);
  for (std::size_t i = 0; i < shape.forward_stages; ++i) {
    auto const& stage = stages[i];
    auto const& set = stage.working_set;
    shape.overlaps_rounds = set.overlaps_rounds();
    for (auto const& kept : stage.kept) {
      if (set.checkpoints() == Checkpoints::stages) {
        keep_apart(kept.boundary, kept.place.bytes, resident);
        continue;
      }
      for (std::size_t m = 0; m < micro_batches_per_round; ++m) {
        if (!resident.contains({BufferKind::checkpoint, kept.boundary, m})) {
          checkpoints[i].push_back(
              {maker(kept.boundary, m), kept.place.bytes, readers.at(kept.boundary + 1), {}});
        }
      }
    }
    for (auto layer = stage.range.first; layer < stage.range.end(); ++layer) {
      for (std::size_t m = 0; m < micro_batches_per_round; ++m) {
        Handed save{maker(layer, m), 0, readers.at(layer), {}};
        for (std::size_t round = 0; round < rounds; ++round) {
          auto const bytes = set.of_round(round).bytes(layer, m);
          save.bytes = std::max(save.bytes, bytes);
          save.in_rounds.push_back(bytes > 0);
        }
        if (save.bytes > 0) {
          saves[i].push_back(std::move(save));
        }
      }
    }
  }
  hand_on(BufferKind::checkpoint, checkpoints, shape);
  hand_on(BufferKind::offloaded_saves, saves, shape);
}

ROUNDPIPE_INLINE Ring HostRings::ring(BufferKind kind,
                                      std::size_t layer,
                                      MicroBatchId micro,
                                      RoundId round) const {
  auto const& rings = of_round(kind, round).rings;
  auto const index = maker(layer, micro.index());
  require(index < rings.size() && rings[index] != none,
          Errc::invalid_argument,
          "the host keeps nothing of this kind of that layer, micro-batch and round");
  return {kind, DeviceId::none(), rings[index]};
}

ROUNDPIPE_INLINE std::size_t HostRings::layer_of(Ring const& ring, RoundId round) const {
  auto const& makers = of_round(ring.kind, round).makers;
  require(ring.index < makers.size() && makers[ring.index] != none,
          Errc::invalid_argument,
          "the ring holds nothing in that round");
  return makers[ring.index] / micro_batches_;
}

ROUNDPIPE_INLINE Bytes HostRings::bytes(BufferKind kind) const {
  Bytes sum = 0;
  for (auto const each : entry_bytes(kind)) {
    sum += align_up(each) * entries(kind);
  }
  return sum;
}

ROUNDPIPE_INLINE HostRings::RoundRings const& HostRings::of_round(BufferKind kind,
                                                                  RoundId round) const {
  auto const& rounds = pool(kind).rounds;
  auto const index = rounds.size() == 1 ? 0 : round.index();
  require(index < rounds.size(), Errc::invalid_argument, "the host keeps nothing of this kind");
  return rounds[index];
}

ROUNDPIPE_INLINE void HostRings::give(RoundRings& round, std::size_t maker, std::size_t ring) {
  round.rings.resize(std::max(round.rings.size(), maker + 1), none);
  round.makers.resize(std::max(round.makers.size(), ring + 1), none);
  round.rings[maker] = ring;
  round.makers[ring] = maker;
}

ROUNDPIPE_INLINE void HostRings::keep_apart(std::size_t layer,
                                            Bytes bytes,
                                            ResidentBoundaries const& resident) {
  auto& pool = pools_.at(BufferKind::checkpoint);
  pool.rounds.resize(1);
  for (std::size_t m = 0; m < micro_batches_; ++m) {
    if (!resident.contains({BufferKind::checkpoint, layer, m})) {
      give(pool.rounds.front(), maker(layer, m), pool.bytes.size());
      pool.bytes.push_back(bytes);
    }
  }
}

ROUNDPIPE_INLINE void HostRings::take_turns(std::size_t layer,
                                            Bytes bytes,
                                            ResidentBoundaries const& resident) {
  auto& pool = pools_.at(BufferKind::boundary_gradient);
  pool.rounds.resize(1);
  pool.entries = pool.bytes.empty() ? 2 : 4;
  pool.bytes.resize(micro_batches_, 0);
  auto& rings = pool.rounds.front().rings;
  rings.resize(std::max(rings.size(), maker(layer + 1, 0)), none);
  for (std::size_t m = 0; m < micro_batches_; ++m) {
    if (!resident.contains({BufferKind::boundary_gradient, layer, m})) {
      rings[maker(layer, m)] = m;
      pool.bytes[m] = std::max(pool.bytes[m], bytes);
    }
  }
}

ROUNDPIPE_INLINE void HostRings::hand_on(BufferKind kind,
                                         std::vector<std::vector<Handed>> const& handed,
                                         ScheduleShape const& shape) {
  if (std::all_of(handed.begin(), handed.end(), [](auto const& each) { return each.empty(); })) {
    return;
  }
  auto& pool = pools_.at(kind);
  pool.entries = 1;
  std::map<Bytes, std::queue<std::size_t>> free;
  std::vector<std::vector<std::size_t>> before(shape.backward_stages);  // what each reads last
  for (std::size_t round = 0; round < shape.rounds; ++round) {
    auto& of_round = pool.rounds.emplace_back();
    std::vector<std::vector<std::size_t>> now(shape.backward_stages);
    std::size_t ended = 0;  // backward stages of the round before
    auto const free_before = [&](std::size_t forward_stage) {
      while (ended < shape.backward_stages &&
             (!shape.overlaps_rounds || shape.first_beside(ended + 1) <= forward_stage)) {
        for (auto const ring : before[ended++]) {
          free[pool.bytes[ring]].push(ring);
        }
      }
    };
    for (std::size_t i = 0; i < shape.forward_stages; ++i) {
      free_before(i);
      for (auto const& each : handed[i]) {
        if (!each.in_rounds.empty() && !each.in_rounds[round]) {
          continue;
        }
        auto& rings = free[each.bytes];
        if (rings.empty()) {
          rings.push(pool.bytes.size());
          pool.bytes.push_back(each.bytes);
        }
        give(of_round, each.maker, rings.front());
        now[each.reader].push_back(rings.front());
        rings.pop();
      }
    }
    free_before(shape.forward_stages);
    before = std::move(now);
  }
}

}  // namespace roundpipe
