// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/plan/boundary_lives.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/resident_rings.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::optional<Ring> BoundaryWay::read_by(StageId stage) const {
  auto const found = reads.find(stage);
  return found == reads.end() ? std::nullopt : std::optional(found->second);
}

ROUNDPIPE_INLINE ResidentRings::ResidentRings(std::span<StageLayout const> stages,
                                              std::span<Slot const> slots,
                                              std::size_t micro_batches,
                                              ResidentBoundaries const& resident,
                                              ResidentBoundaries const& sent)
    : ResidentRings(resident.empty() && sent.empty()
                        ? std::vector<detail::BoundaryLife>()
                        : detail::boundary_lives(stages, slots, micro_batches),
                    resident,
                    sent) {}

ROUNDPIPE_INLINE ResidentRings::ResidentRings(std::span<detail::BoundaryLife const> lives,
                                              ResidentBoundaries const& resident,
                                              ResidentBoundaries const& sent) {
  for (auto const& life : lives) {
    auto const of_all = resident.contains(life.made);
    if (life.readers.empty() || (!of_all && !sent.contains(life.made))) {
      continue;
    }
    auto const& next = life.next();
    if (!of_all && next.device == life.device) {
      continue;  // the host holds it for that stage, too
    }
    auto served = life.readers;
    if (next.stage != life.stage) {  // the stage that makes it has it anyway
      std::erase_if(served, [&](auto const& reader) { return reader.stage == life.stage; });
    }
    auto& way = ways_[{life.made, life.round}];
    way.through_host = !of_all && served.size() > 1;
    if (!of_all) {
      served = {next};
    }
    std::map<DeviceId, Ring> rings;
    for (auto const& reader : served) {
      auto const [ring, is_new] = rings.try_emplace(reader.device);
      if (is_new) {
        ring->second = take(life, served, reader.device);
        if (reader.device == life.device) {
          way.own = way.reads[life.stage] = ring->second;
        } else {
          way.sent.push_back(ring->second);
        }
      }
      way.reads[reader.stage] = ring->second;
    }
  }
}

ROUNDPIPE_INLINE Ring ResidentRings::take(detail::BoundaryLife const& life,
                                          std::span<detail::BoundaryReader const> readers,
                                          DeviceId device) {
  auto const kind = life.made.kind;
  auto until = life.from;
  for (auto const& reader : readers) {
    until = reader.device == device ? std::max(until, reader.until) : until;
  }
  auto& pool = pools_[{device, kind}];
  while (!pool.used.empty() && pool.used.begin()->first < life.from) {
    pool.free.insert(pool.used.begin()->second);
    pool.used.erase(pool.used.begin());
  }
  if (pool.free.empty()) {
    pool.free.insert(pool.count++);
  }
  auto const ring = *pool.free.begin();
  pool.free.erase(pool.free.begin());
  pool.used.emplace(until, ring);
  auto& size = sizes_.of(kind);
  size.count = std::max(size.count, pool.count);
  size.entry_bytes = std::max(size.entry_bytes, align_up(life.bytes));
  return {kind, device, ring};
}

ROUNDPIPE_INLINE BoundaryWay const& ResidentRings::way(MadeBoundary const& made,
                                                       RoundId round) const {
  static BoundaryWay const through_host;
  auto const found = ways_.find({made, round});
  return found == ways_.end() ? through_host : found->second;
}

namespace detail {

/// Which boundaries devices may keep: those that no other device reads, and all others.
struct ResidencyKinds {
  bool stay = true;
  bool go_to_peers = false;
};

/// A boundary that devices can keep.
struct KeptCandidate {
  std::size_t length = 0;  ///< For how many passes at most.
  MadeBoundary made;
  bool of_all = true;  ///< For all stages that read it, or for the next one.

  friend constexpr auto operator<=>(KeptCandidate const&, KeptCandidate const&) noexcept = default;
};

/// For how many passes at most devices would keep boundaries.
struct KeptLengths {
  std::map<MadeBoundary, std::size_t> of_all;   ///< For all readers.
  std::map<MadeBoundary, std::size_t> of_next;  ///< For the next one, on another device, alone.
};

/// Of those of \p lives that devices can keep in all rounds.
[[nodiscard]] ROUNDPIPE_INLINE KeptLengths kept_lengths(std::vector<BoundaryLife> const& lives,
                                                        ResidencyKinds kinds) {
  KeptLengths lengths;
  std::set<MadeBoundary> leave;
  for (auto const& life : lives) {
    auto const allowed = life.one_device() ? kinds.stay : kinds.go_to_peers;
    if (life.readers.empty() || !allowed || life.bytes == 0) {
      leave.insert(life.made);
      continue;
    }
    auto const lengthen = [&](auto& of, BoundaryReader const& last) {
      auto& length = of[life.made];
      length = std::max(length, last.until - life.from);
    };
    lengthen(lengths.of_all, life.readers.back());
    if (!life.one_device() && life.next().device != life.device &&
        life.next().stage != life.readers.back().stage) {
      lengthen(lengths.of_next, life.next());
    }
  }
  for (auto const& made : leave) {
    lengths.of_all.erase(made);
    lengths.of_next.erase(made);
  }
  return lengths;
}

/// What can be kept, first what is read soonest: the same room serves more of it.
[[nodiscard]] ROUNDPIPE_INLINE std::vector<KeptCandidate> kept_candidates(
    std::vector<BoundaryLife> const& training,
    std::vector<BoundaryLife> const& evaluating,
    ResidencyKinds kinds) {
  auto const in_training = kept_lengths(training, kinds);
  auto const in_evaluations = kept_lengths(evaluating, kinds);
  std::set<MadeBoundary> evaluated;
  for (auto const& life : evaluating) {
    evaluated.insert(life.made);
  }
  std::vector<KeptCandidate> found;
  for (bool const of_all : {false, true}) {
    for (auto const& [made, length] : of_all ? in_training.of_all : in_training.of_next) {
      if (!of_all || in_evaluations.of_all.contains(made) || !evaluated.contains(made)) {
        found.push_back({length, made, of_all});
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

ROUNDPIPE_INLINE FoundPlan keep_resident(FoundPlan found,
                                         std::span<Slot const> slots,
                                         std::span<Slot const> evaluating,
                                         PlanOptions const& options,
                                         PlanForecast const& forecast,
                                         ResidencyTrial trial) {
  auto const plan = found.plan;
  auto const is_forced = trial == ResidencyTrial::forced;
  auto const training = boundary_lives(plan.train, slots, options.micro_batches_per_round);
  auto const evaluated = boundary_lives(plan.evaluate, evaluating, options.micro_batches_per_round);
  auto const take = [&](ResidencyKinds kinds, bool is_pinned) {
    auto const candidates = kept_candidates(training, evaluated, kinds);
    auto const with = [&](std::size_t count) {
      auto other = plan;
      for (std::size_t i = 0; i < count; ++i) {
        auto const& [length, made, of_all] = candidates[i];
        (of_all ? other.resident : other.sent).insert(made);
        if (of_all) {
          other.sent.erase(made);
        }
      }
      ResidentRings const train(training, other.resident, other.sent);
      ResidentRings const evaluate(evaluated, other.resident, other.sent);
      for (auto const kind : ResidentLayout::kinds) {
        auto size = train.size(kind);
        size.count = std::max(size.count, evaluate.size(kind).count);
        size.entry_bytes = std::max(size.entry_bytes, evaluate.size(kind).entry_bytes);
        other.memory.add_resident(kind, size);
      }
      return other;
    };
    // More boundaries take more room, so bisection finds how many of the first there is room for.
    std::size_t most = 0;
    for (auto end = candidates.size() + 1; end - most > 1;) {
      auto const middle = most + (end - most) / 2;
      auto const other = with(middle);
      auto const fits = other.memory.bytes + options.held_by(other) <= options.device_memory;
      (fits ? most : end) = middle;
    }
    if (most == 0) {
      return;
    }
    FoundPlan kept{with(most), found.seconds};
    if (forecast && !is_forced) {
      kept.seconds = forecast(kept.plan);
    }
    if (is_pinned || is_forced || kept.seconds <= found.seconds ||
        !options.host_has_room(found.plan)) {
      found = std::move(kept);
    }
  };
  auto const stay = options.lets_stay(static_cast<bool>(forecast));
  auto const peers = options.sends_to_peers(static_cast<bool>(forecast));
  if (stay && !(peers && trial != ResidencyTrial::all)) {
    take({.stay = true}, options.resident_boundaries.has_value());
  }
  if (peers) {
    take({.stay = stay, .go_to_peers = true}, options.peer_boundaries.has_value());
  }
  return found;
}

}  // namespace detail

}  // namespace roundpipe
