// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/sequence_order.hpp>
#include <roundpipe/graph/verify.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/place_check.hpp>
#include <roundpipe/memory/stage_layout.hpp>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

class PlaceCheck {
 public:
  PlaceCheck(std::span<UnrolledAction const> actions,
             SequenceOrder const& order,
             DeviceMemoryPlan const& plan,
             StagesOfGraph const& stages)
      : actions_(actions), order_(order), plan_(plan), stages_(stages) {}

  [[nodiscard]] std::vector<Violation> run(std::size_t most) && {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      if (actions_[i].lane.device.valid()) {
        add_uses_of(i);
      }
    }
    std::map<DeviceId, Owners> owners;
    for (std::size_t c = 0; c < contents_.size() && violations_.size() < most; ++c) {
      take(owners[contents_[c].device], c);
    }
    return std::move(violations_);
  }

 private:
  /// By the end of consecutive bytes: where they begin, and the content that has them.
  struct Owned {
    Bytes begin = 0;
    std::size_t content = 0;
  };
  using Owners = std::map<Bytes, Owned>;

  /// The first and the last user on a lane.
  struct Users {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  struct Content {
    DeviceId device;
    ArenaRange range;
    std::map<Lane, Users> users;  // a peer's lane, too, which writes a boundary that it sends
  };

  /// An acquisition of a ring; or (without a ring's device) scratch of a graph's slot and
  /// micro-batch on a device.
  struct Key {
    Ring ring;
    std::uint64_t content = 0;
    std::array<std::size_t, 3> scratch{};

    friend auto operator<=>(Key const&, Key const&) = default;
  };

  void add_uses_of(std::size_t i) {
    auto const& unrolled = actions_[i];
    auto const& action = *unrolled.action;
    auto const& stage = stages_(*unrolled.source)[action.stage.index()];
    for (auto const& access : unrolled.accesses) {
      if (auto const& ring = access.location.ring; ring.device.valid()) {
        add_use(
            {ring, access.content, {}}, i, ring.device, plan_.entry(ring, access.content, stage));
      }
    }
    if (unrolled.lane.kind == LaneKind::compute && stage.scratch_bytes > 0) {
      Key const key{{}, 0, {unrolled.graph, action.slot.index(), action.micro_batch.index()}};
      add_use(key, i, unrolled.lane.device, {stage.region.scratch, stage.scratch_bytes});
    }
  }

  void add_use(Key const& key, std::size_t i, DeviceId device, ArenaRange const& range) {
    if (range.bytes == 0) {
      return;
    }
    auto const [known, is_new] = known_.try_emplace(key, contents_.size());
    if (is_new) {
      contents_.push_back({device, range, {}});
    }
    auto const [users, is_first] =
        contents_[known->second].users.try_emplace(actions_[i].lane, Users{i, i});
    users->second.last = i;
  }

  /// Content \p c takes its bytes from others. Whoever had these before was over when they began.
  void take(Owners& owners, std::size_t c) {
    auto const [offset, bytes] = contents_[c].range;
    auto const end = offset + bytes;
    if (end > plan_.bytes) {
      auto const i = contents_[c].users.begin()->second.first;
      violations_.push_back({Rule::buffer_reuse,
                             i,
                             i,
                             std::string(name_of(Rule::buffer_reuse)) + ": " +
                                 to_string(actions_[i]) + " uses bytes behind the arena"});
      return;
    }
    for (auto owned = owners.upper_bound(offset);
         owned != owners.end() && owned->second.begin < end;) {
      auto const [owned_end, before] = *owned;
      check(before.content, c);
      owned = owners.erase(owned);
      if (before.begin < offset) {
        owners.emplace(offset, before);
      }
      if (owned_end > end) {
        owners.emplace(owned_end, Owned{end, before.content});
      }
    }
    owners.emplace(end, Owned{offset, c});
  }

  void check(std::size_t before, std::size_t after) {
    for (auto const& [lane, first] : contents_[before].users) {
      for (auto const& [other, second] : contents_[after].users) {
        auto const in_order =
            lane == other ? first.last < second.first : order_.holds(first.last, second.first);
        if (!in_order) {
          violations_.push_back({Rule::buffer_reuse,
                                 first.last,
                                 second.first,
                                 std::string(name_of(Rule::buffer_reuse)) + ": " +
                                     to_string(actions_[first.last]) + " shares bytes with " +
                                     to_string(actions_[second.first])});
          return;
        }
      }
    }
  }

  std::span<UnrolledAction const> actions_;
  SequenceOrder const& order_;
  DeviceMemoryPlan const& plan_;
  StagesOfGraph const& stages_;
  std::map<Key, std::size_t> known_;
  std::vector<Content> contents_;  // in the order of their first users
  std::vector<Violation> violations_;
};

}  // namespace detail

ROUNDPIPE_INLINE std::vector<Violation> verify_places(std::span<UnrolledAction const> actions,
                                                      SequenceOrder const& order,
                                                      DeviceMemoryPlan const& plan,
                                                      StagesOfGraph const& stages,
                                                      std::size_t most) {
  return detail::PlaceCheck(actions, order, plan, stages).run(most);
}

ROUNDPIPE_INLINE void require_apart(GraphSequence const& sequence,
                                    DeviceMemoryPlan const& plan,
                                    StagesOfGraph const& stages) {
  auto const actions = sequence.unroll();
  auto const violations = verify_places(actions, SequenceOrder(actions), plan, stages, 1);
  if (!violations.empty()) {
    throw Error(Errc::unsafe_graph, "the plan's memory can go wrong; " + violations.front().text);
  }
}

}  // namespace roundpipe
