// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/plan/boundary_lives.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/residency_choice.hpp>
#include <roundpipe/plan/ring_pools.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

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

/// The rings of what devices keep of a graph's boundaries, for any number of candidates, from the
/// first on.
class KeptRings {
 public:
  KeptRings(std::vector<BoundaryLife> const& lives, std::vector<KeptCandidate> const& candidates) {
    constexpr auto never = std::numeric_limits<std::size_t>::max();
    std::map<MadeBoundary, std::array<std::size_t, 2>> ranks;  // of the next, of all
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      auto const& each = candidates[i];
      ranks.try_emplace(each.made, std::array{never, never}).first->second[each.of_all ? 1 : 0] = i;
    }
    for (auto const& life : lives) {
      auto const found = ranks.find(life.made);
      if (found == ranks.end()) {
        continue;
      }
      auto const [of_next, of_all] = found->second;
      add(life, false, of_next, of_all);
      add(life, true, of_all, never);
    }
  }

  /// With the first \p count candidates.
  [[nodiscard]] ResidentLayout sizes(std::size_t count) const {
    RingPools pools;
    for (auto const& each : stays_) {
      if (each.first < count && count <= each.end) {
        pools.take(each.kind, each.stay.device, each.from, each.stay.until, each.bytes);
      }
    }
    return pools.sizes();
  }

 private:
  struct Stay {
    std::size_t first;  ///< The candidate that it is of,
    std::size_t end;    ///< and the one that takes its place.
    BufferKind kind;
    std::size_t from;
    BoundaryStay stay;
    Bytes bytes;
  };

  void add(BoundaryLife const& life, bool of_all, std::size_t first, std::size_t end) {
    if (first < end) {
      for (auto const& stay : life.stays(life.kept_for(of_all))) {
        stays_.push_back({first, end, life.made.kind, life.from, stay, life.bytes});
      }
    }
  }

  std::vector<Stay> stays_;  // in the order in which they begin
};

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
    KeptRings const train(training, candidates);
    KeptRings const evaluate(evaluated, candidates);
    auto const with = [&](std::size_t count) {
      auto other = plan;
      for (std::size_t i = 0; i < count; ++i) {
        auto const& [length, made, of_all] = candidates[i];
        (of_all ? other.resident : other.sent).insert(made);
        if (of_all) {
          other.sent.erase(made);
        }
      }
      auto const in_training = train.sizes(count);
      auto const in_evaluations = evaluate.sizes(count);
      for (auto const kind : ResidentLayout::kinds) {
        auto size = in_training.of(kind);
        size.count = std::max(size.count, in_evaluations.of(kind).count);
        size.entry_bytes = std::max(size.entry_bytes, in_evaluations.of(kind).entry_bytes);
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
