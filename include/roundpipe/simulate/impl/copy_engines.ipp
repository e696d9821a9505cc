// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/simulate/copy_engines.hpp>
#include <roundpipe/simulate/link_sharing.hpp>

#include <algorithm>
#include <cstddef>
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
  auto const at = directions_ * lane.device.index() + static_cast<std::size_t>(direction);
  auto& engine = engines_[at];
  move_to(now_s);
  Copy const copy{action, bytes, lane.kind};
  auto const goes_on = sharing_.link().streams_keep_engines && flights_.flows[at] == 0 &&
                       engine.ended == lane.kind && engine.ended_s == now_s;
  engine.queue.insert(goes_on ? engine.queue.begin() : engine.queue.end(), copy);
  if (goes_on || engine.queue.size() == 1) {
    begin(at);
  }
}

ROUNDPIPE_INLINE std::optional<double> CopyEngines::next_event_s() const {
  auto next_s = never;
  for (auto const event_s : flights_.event_s) {
    next_s = std::min(next_s, event_s);
  }
  return next_s < never ? std::optional(next_s) : std::nullopt;
}

ROUNDPIPE_INLINE std::span<std::size_t const> CopyEngines::advance(double now_s) {
  move_to(now_s);
  ended_.clear();
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    if (flights_.event_s[i] > now_s) {
      continue;
    }
    auto& engine = engines_[i];
    if (flights_.flows[i] == 0 && engine.queue.front().bytes > 0) {
      flights_.bytes_left[i] = static_cast<double>(engine.queue.front().bytes);
      set_flows(i, true);
      continue;
    }
    ended_.push_back(engine.queue.front().action);
    engine.ended = engine.queue.front().lane;
    engine.ended_s = now_s;
    engine.queue.pop_front();
    set_flows(i, false);
    flights_.event_s[i] = never;
    if (!engine.queue.empty()) {
      begin(i);
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

ROUNDPIPE_INLINE double CopyEngines::copied_bytes(DeviceId device, double now_s) {
  move_to(now_s);
  return copied_bytes_[device.index()];
}

ROUNDPIPE_INLINE void CopyEngines::add_peers() {
  auto const before = std::exchange(directions_, 3);
  auto const devices = engines_.size() / before;
  std::vector<Engine> engines(directions_ * devices);
  Flights flights(engines.size());
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    auto const at = directions_ * (i / before) + i % before;
    engines[at] = std::move(engines_[i]);
    flights.flows[at] = flights_.flows[i];
    flights.rates[at] = flights_.rates[i];
    flights.bytes_left[at] = flights_.bytes_left[i];
    flights.event_s[at] = flights_.event_s[i];
  }
  engines_ = std::move(engines);
  flights_ = std::move(flights);
  rates_.clear();
  flowing_together_ = nullptr;
}

ROUNDPIPE_INLINE void CopyEngines::move_to(double now_s) {
  if (now_s == now_s_) {
    return;
  }
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    auto const rate = flights_.rates[i];
    if (rate > 0 && rate != LinkSharing::unlimited) {
      auto& left = flights_.bytes_left[i];
      auto const moved = std::min(left, rate * (now_s - now_s_));
      left -= moved;
      copied_bytes_[i / directions_] += moved;
    }
  }
  now_s_ = now_s;
}

ROUNDPIPE_INLINE void CopyEngines::share() {
  if (flowing_together_ == nullptr) {
    auto const [found, is_new] = rates_.try_emplace(flights_.flows);
    if (is_new) {
      found->second = rates();
    }
    flowing_together_ = &found->second;
  }
  auto const& link = sharing_.link();
  auto const beside_work = [&](double share) { return working_ > 0 ? share : 1; };
  double const shares[] = {
      beside_work(link.upload_share_beside_work), beside_work(link.download_share_beside_work), 1};
  std::size_t direction = 0;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    auto const share = shares[direction];
    direction = direction + 1 == directions_ ? 0 : direction + 1;
    if (flights_.flows[i] == 0) {
      continue;
    }
    auto const rate = (*flowing_together_)[i] * share;
    // Otherwise the end of the copy stays the same.
    if (flights_.rates[i] != rate || flights_.event_s[i] <= now_s_) {
      flights_.rates[i] = rate;
      flights_.event_s[i] = now_s_ + flights_.bytes_left[i] / rate;
    }
  }
}

ROUNDPIPE_INLINE std::vector<double> CopyEngines::rates() const {
  std::vector<CopyFlow> flows;
  std::vector<std::size_t> flowing;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    if (flights_.flows[i] != 0) {
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
