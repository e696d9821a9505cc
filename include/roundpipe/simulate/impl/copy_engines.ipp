// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/simulate/copy_engines.hpp>
#include <roundpipe/simulate/link_sharing.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void CopyEngines::add(std::size_t action,
                                       Lane const& lane,
                                       Bytes bytes,
                                       double now_s) {
  auto const direction = copy_direction(lane.kind).value_or(CopyDirection::up);
  if (direction == CopyDirection::peer && directions_ == 2) {
    add_peers();
  }
  auto& engine = engines_[directions_ * lane.device.index() + static_cast<std::size_t>(direction)];
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
  auto next_s = std::numeric_limits<double>::infinity();
  for (auto const& engine : engines_) {
    next_s = engine.queue.empty() ? next_s : std::min(next_s, engine.event_s);
  }
  return next_s < std::numeric_limits<double>::infinity() ? std::optional(next_s) : std::nullopt;
}

ROUNDPIPE_INLINE std::span<std::size_t const> CopyEngines::advance(double now_s) {
  move_to(now_s);
  ended_.clear();
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    auto& engine = engines_[i];
    if (engine.queue.empty() || engine.event_s > now_s) {
      continue;
    }
    if (!engine.flows && engine.queue.front().bytes_left > 0) {
      engine.flows = true;
      flowing_[i] = true;
    } else {
      ended_.push_back(engine.queue.front().action);
      engine.ended = engine.queue.front().lane;
      engine.ended_s = now_s;
      engine.queue.pop_front();
      engine.flows = false;
      flowing_[i] = false;
      if (!engine.queue.empty()) {
        begin(engine);
      }
    }
  }
  share();
  return ended_;
}

ROUNDPIPE_INLINE void CopyEngines::add_work(int lanes, double now_s) {
  auto const changes = (working_ > 0) != (working_ + lanes > 0);
  working_ += lanes;
  auto const& link = sharing_.link();
  if (changes && std::min(link.upload_share_beside_work, link.download_share_beside_work) < 1) {
    move_to(now_s);
    share();
  }
}

ROUNDPIPE_INLINE void CopyEngines::add_peers() {
  auto const devices = engines_.size() / directions_;
  std::vector<Engine> engines(3 * devices);
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    engines[3 * (i / directions_) + i % directions_] = std::move(engines_[i]);
  }
  directions_ = 3;
  engines_ = std::move(engines);
  flowing_.resize(engines_.size());
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    flowing_[i] = engines_[i].flows;
  }
  rates_.clear();
}

ROUNDPIPE_INLINE void CopyEngines::move_to(double now_s) {
  if (now_s == now_s_) {
    return;
  }
  for (auto& engine : engines_) {
    if (engine.flows && engine.rate != LinkSharing::unlimited) {
      auto& left = engine.queue.front().bytes_left;
      left = std::max(0.0, left - engine.rate * (now_s - now_s_));
    }
  }
  now_s_ = now_s;
}

ROUNDPIPE_INLINE void CopyEngines::share() {
  auto const [found, is_new] = rates_.try_emplace(flowing_);
  if (is_new) {
    found->second = rates();
  }
  auto const& link = sharing_.link();
  auto const beside_work = [&](double share) { return working_ > 0 ? share : 1; };
  double const shares[] = {
      beside_work(link.upload_share_beside_work), beside_work(link.download_share_beside_work), 1};
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    auto& engine = engines_[i];
    if (!engine.flows) {
      continue;
    }
    auto const rate = found->second[i] * shares[i % directions_];
    // Otherwise the end of the copy stays the same.
    if (engine.rate != rate || engine.event_s <= now_s_) {
      engine.rate = rate;
      engine.event_s = now_s_ + engine.queue.front().bytes_left / engine.rate;
    }
  }
}

ROUNDPIPE_INLINE std::vector<double> CopyEngines::rates() const {
  std::vector<CopyFlow> flows;
  std::vector<std::size_t> flowing;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    if (engines_[i].flows) {
      flows.push_back({i / directions_, static_cast<CopyDirection>(i % directions_)});
      flowing.push_back(i);
    }
  }
  auto const rates = sharing_.rates(flows);
  std::vector<double> result(engines_.size(), 0.0);
  for (std::size_t i = 0; i < flowing.size(); ++i) {
    result[flowing[i]] = rates[i];
  }
  return result;
}

}  // namespace detail

}  // namespace roundpipe
