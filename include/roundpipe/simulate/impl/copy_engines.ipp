// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/simulate/copy_engines.hpp>
#include <roundpipe/simulate/link_sharing.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void CopyEngines::add(std::size_t action,
                                       Lane const& lane,
                                       Bytes bytes,
                                       double now_s) {
  auto const down = lane.kind == LaneKind::activation_down ||
                    lane.kind == LaneKind::gradient_down || lane.kind == LaneKind::save_down;
  auto& engine = engines_[2 * lane.device.index() + (down ? 1 : 0)];
  move_to(now_s);
  Copy const copy{action, static_cast<double>(bytes), lane.kind};
  auto const goes_on = sharing_.link().streams_keep_engines && !engine.flows &&
                       engine.ended == lane.kind && engine.ended_s == now_s;
  engine.queue.insert(goes_on ? engine.queue.begin() : engine.queue.end(), copy);
  if (goes_on || engine.queue.size() == 1) {
    begin(engine);
  }
}

ROUNDPIPE_INLINE std::optional<double> CopyEngines::next_event_s() const {
  std::optional<double> next;
  for (auto const& engine : engines_) {
    if (!engine.queue.empty()) {
      auto const at_s = engine.event_s;
      next = std::min(next.value_or(at_s), at_s);
    }
  }
  return next;
}

ROUNDPIPE_INLINE std::vector<std::size_t> CopyEngines::advance(double now_s) {
  move_to(now_s);
  std::vector<std::size_t> ended;
  for (auto& engine : engines_) {
    if (engine.queue.empty() || engine.event_s > now_s) {
      continue;
    }
    if (!engine.flows && engine.queue.front().bytes_left > 0) {
      engine.flows = true;
    } else {
      ended.push_back(engine.queue.front().action);
      engine.ended = engine.queue.front().lane;
      engine.ended_s = now_s;
      engine.queue.pop_front();
      engine.flows = false;
      if (!engine.queue.empty()) {
        begin(engine);
      }
    }
  }
  share();
  return ended;
}

ROUNDPIPE_INLINE void CopyEngines::set_work(std::size_t lanes, double now_s) {
  auto const changes = (working_ > 0) != (lanes > 0);
  working_ = lanes;
  if (changes && sharing_.link().upload_share_beside_work < 1) {
    move_to(now_s);
    share();
  }
}

ROUNDPIPE_INLINE void CopyEngines::move_to(double now_s) {
  for (auto& engine : engines_) {
    if (engine.flows && engine.rate != LinkSharing::unlimited) {
      auto& left = engine.queue.front().bytes_left;
      left = std::max(0.0, left - engine.rate * (now_s - now_s_));
    }
  }
  now_s_ = now_s;
}

ROUNDPIPE_INLINE void CopyEngines::share() {
  std::vector<CopyFlow> flows;
  std::vector<Engine*> flowing;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    if (engines_[i].flows) {
      flows.push_back({i / 2, i % 2 == 0 ? CopyDirection::up : CopyDirection::down});
      flowing.push_back(&engines_[i]);
    }
  }
  auto rates = sharing_.rates(flows);
  for (std::size_t i = 0; i < flowing.size(); ++i) {
    if (working_ > 0 && flows[i].direction == CopyDirection::up) {
      rates[i] *= sharing_.link().upload_share_beside_work;
    }
    auto& engine = *flowing[i];
    if (engine.rate != rates[i] || engine.event_s <= now_s_) {  // otherwise its end stays the same
      engine.rate = rates[i];
      engine.event_s = now_s_ + engine.queue.front().bytes_left / engine.rate;
    }
  }
}

}  // namespace detail

}  // namespace roundpipe
