// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/sequence_order.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
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
  std::map<Lane, std::uint32_t> lengths;
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    lanes_[i] = numbers.try_emplace(actions_[i].lane, numbers.size()).first->second;
    positions_[i] = ++lengths[actions_[i].lane];
  }
  lane_count_ = numbers.size();
}

ROUNDPIPE_INLINE void SequenceOrder::run() {
  auto const count = actions_.size();
  std::vector<std::vector<std::size_t>> before(2 * count);
  std::map<Lane, std::size_t> last_run;
  std::map<DeviceId, std::size_t> last_issue;
  for (std::size_t i = 0; i < count; ++i) {
    auto const& action = actions_[i];
    auto const follow = [&](auto& last, auto const& key, std::size_t part) {
      if (auto const [found, is_new] = last.try_emplace(key, part); !is_new) {
        before[part].push_back(std::exchange(found->second, part));
      }
    };
    before[2 * i + 1].push_back(2 * i);
    follow(last_run, action.lane, 2 * i + 1);
    if (action.lane.device.valid()) {
      follow(last_issue, action.lane.device, 2 * i);
    }
    for (auto const wait : action.waits) {
      before[2 * i + 1].push_back(2 * wait + 1);
      if (action.lane.device.valid() && actions_[wait].lane.device.valid()) {
        before[2 * i].push_back(2 * wait);
      }
    }
  }
  std::vector<std::vector<std::size_t>> after(2 * count);
  std::vector<std::size_t> missing(2 * count);
  std::vector<std::size_t> ready;
  for (std::size_t part = 0; part < 2 * count; ++part) {
    missing[part] = before[part].size();
    for (auto const earlier : before[part]) {
      after[earlier].push_back(part);
    }
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
  for (std::size_t part = 0; part < 2 * count; ++part) {
    if (missing[part] > 0) {
      find_circle(part, before, missing);
      return;
    }
  }
}

ROUNDPIPE_INLINE void SequenceOrder::set_clock(std::size_t i,
                                               std::vector<std::size_t> const& before) {
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

ROUNDPIPE_INLINE void SequenceOrder::find_circle(
    std::size_t part,
    std::vector<std::vector<std::size_t>> const& before,
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
