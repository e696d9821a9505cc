// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/issuer.hpp>
#include <roundpipe/graph/sequence_order.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE SequenceOrder::SequenceOrder(std::span<UnrolledAction const> actions)
    : actions_(actions), lanes_(actions.size()), positions_(actions.size()) {
  number_lanes();
  clocks_.resize(actions.size() * lane_count_);
  run();
}

ROUNDPIPE_INLINE bool SequenceOrder::holds(std::size_t a, std::size_t b) const {
  if (actions_[a].epoch != actions_[b].epoch) {
    return actions_[a].epoch < actions_[b].epoch;
  }
  return a != b && clocks_[b * lane_count_ + lanes_[a]] >= positions_[a];
}

ROUNDPIPE_INLINE void SequenceOrder::number_lanes() {
  std::map<Lane, std::size_t> numbers;
  std::vector<std::uint32_t> lengths;
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    lanes_[i] = numbers.try_emplace(actions_[i].lane, numbers.size()).first->second;
    lengths.resize(numbers.size());
    positions_[i] = ++lengths[lanes_[i]];
  }
  lane_count_ = numbers.size();
}

ROUNDPIPE_INLINE std::vector<SequenceOrder::PartOrder> SequenceOrder::part_orders() const {
  std::vector<PartOrder> orders;
  orders.reserve(std::accumulate(
      actions_.begin(), actions_.end(), std::size_t{0}, [](std::size_t sum, auto const& action) {
        return sum + 3 + 2 * action.waits.size();  // at most, see below
      }));
  constexpr auto none = static_cast<std::size_t>(-1);
  std::vector<std::size_t> last_run(lane_count_, none);
  std::map<std::size_t, std::size_t> last_issue;  // by issuer
  auto const follow = [&](std::size_t& last, std::size_t part) {
    if (auto const earlier = std::exchange(last, part); earlier != none) {
      orders.push_back({earlier, part});
    }
  };
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    auto const& action = actions_[i];
    auto const on_device = action.lane.device.valid();
    orders.push_back({2 * i, 2 * i + 1});
    follow(last_run[lanes_[i]], 2 * i + 1);
    if (on_device) {
      follow(last_issue.try_emplace(Issuer::of(action.lane).index(), none).first->second, 2 * i);
    }
    for (auto const wait : action.waits) {
      orders.push_back({2 * wait + 1, 2 * i + 1});
      if (on_device && actions_[wait].lane.device.valid()) {
        orders.push_back({2 * wait, 2 * i});
      } else if (on_device && Issuer::of(action.lane).waits_for_host()) {
        orders.push_back({2 * wait + 1, 2 * i});
      }
    }
  }
  return orders;
}

/// For each part of a sequence, the parts that come right before it, or right after it. The lists
/// lie side by side in one array.
class SequenceOrder::PartLists {
 public:
  /// The list of a part holds \p member of each of \p orders whose \p key is the part.
  PartLists(std::size_t parts,
            std::span<PartOrder const> orders,
            std::size_t PartOrder::* key,
            std::size_t PartOrder::* member)
      : begins_(parts + 1), members_(orders.size()) {
    for (auto const& order : orders) {
      ++begins_[order.*key + 1];
    }
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    auto next = begins_;
    for (auto const& order : orders) {
      members_[next[order.*key]++] = order.*member;
    }
  }

  [[nodiscard]] std::span<std::size_t const> operator[](std::size_t part) const {
    return {members_.data() + begins_[part], members_.data() + begins_[part + 1]};
  }

 private:
  std::vector<std::size_t> begins_;  // of each list, and the end of the last
  std::vector<std::size_t> members_;
};

ROUNDPIPE_INLINE void SequenceOrder::run() {
  auto const parts = 2 * actions_.size();
  auto const orders = part_orders();
  PartLists const before(parts, orders, &PartOrder::later, &PartOrder::earlier);
  PartLists const after(parts, orders, &PartOrder::earlier, &PartOrder::later);
  std::vector<std::size_t> missing(parts);
  std::vector<std::size_t> ready;
  for (std::size_t part = 0; part < parts; ++part) {
    missing[part] = before[part].size();
    if (missing[part] == 0) {
      ready.push_back(part);
    }
  }
  while (!ready.empty()) {
    auto const part = ready.back();
    ready.pop_back();
    if (part % 2 == 1) {
      set_clock(part / 2, before[part]);
    }
    for (auto const next : after[part]) {
      if (--missing[next] == 0) {
        ready.push_back(next);
      }
    }
  }
  for (std::size_t part = 0; part < parts; ++part) {
    if (missing[part] > 0) {
      find_circle(part, before, missing);
      return;
    }
  }
}

ROUNDPIPE_INLINE void SequenceOrder::set_clock(std::size_t i, std::span<std::size_t const> before) {
  auto* const clock = clocks_.data() + i * lane_count_;
  for (auto const part : before) {
    auto const j = part / 2;
    if (part % 2 == 0 || actions_[j].epoch != actions_[i].epoch) {
      continue;
    }
    auto const* const other = clocks_.data() + j * lane_count_;
    for (std::size_t lane = 0; lane < lane_count_; ++lane) {
      clock[lane] = std::max(clock[lane], other[lane]);
    }
  }
  clock[lanes_[i]] = positions_[i];
}

ROUNDPIPE_INLINE void SequenceOrder::find_circle(std::size_t part,
                                                 PartLists const& before,
                                                 std::vector<std::size_t> const& missing) {
  std::vector<std::size_t> path;
  while (std::find(path.begin(), path.end(), part) == path.end()) {
    path.push_back(part);
    part = *std::find_if(before[part].begin(), before[part].end(), [&](std::size_t earlier) {
      return missing[earlier] > 0;
    });
  }
  for (auto at = std::find(path.begin(), path.end(), part); at != path.end(); ++at) {
    if (deadlock_.empty() || deadlock_.back() != *at / 2) {
      deadlock_.push_back(*at / 2);
    }
  }
}

}  // namespace roundpipe
