// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/simulate/link_model.hpp>
#include <roundpipe/simulate/link_sharing.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE LinkSharing::LinkSharing(LinkModel link, std::size_t devices)
    : link_(std::move(link)), switch_of_(devices, none) {
  check(link_, devices);
  for (std::size_t group = 0; group < link_.groups.size(); ++group) {
    for (auto const device : link_.groups[group]) {
      switch_of_[device] = group;
    }
  }
}

ROUNDPIPE_INLINE std::vector<double> LinkSharing::rates(std::span<CopyFlow const> flows) const {
  auto limits = limits_of(flows);
  std::vector<double> result(flows.size(), unlimited);
  std::vector<bool> settled(flows.size(), false);
  for (;;) {
    Limit* tightest = nullptr;
    for (auto& limit : limits) {
      std::erase_if(limit.flows, [&](std::size_t flow) { return settled[flow]; });
      if (!limit.flows.empty() && (tightest == nullptr || limit.share() < tightest->share())) {
        tightest = &limit;
      }
    }
    if (tightest == nullptr) {
      return result;
    }
    auto const share = tightest->share();
    auto const taken = tightest->flows;  // a copy: the limit loses its flows below
    for (auto const flow : taken) {
      result[flow] = share;
      settled[flow] = true;
      for (auto& limit : limits) {
        if (std::find(limit.flows.begin(), limit.flows.end(), flow) != limit.flows.end()) {
          limit.left = std::max(0.0, limit.left - share);
        }
      }
    }
  }
}

ROUNDPIPE_INLINE std::vector<LinkSharing::Limit> LinkSharing::limits_of(
    std::span<CopyFlow const> flows) const {
  std::vector<Limit> limits;
  auto const add = [&](double bytes_per_second, auto const& is_limited) {
    Limit limit{bytes_per_second, {}};
    for (std::size_t i = 0; bytes_per_second > 0 && i < flows.size(); ++i) {
      if (is_limited(flows[i])) {
        limit.flows.push_back(i);
      }
    }
    if (!limit.flows.empty()) {
      limits.push_back(std::move(limit));
    }
  };
  for (auto const direction : {CopyDirection::up, CopyDirection::down}) {
    for (std::size_t device = 0; device < switch_of_.size(); ++device) {
      auto const both_ways = std::any_of(flows.begin(), flows.end(), [&](CopyFlow const& flow) {
        return flow.device == device && flow.direction != direction;
      });
      auto const own = link_.device_factors.empty() ? 1 : link_.device_factors[device];
      auto const factor = both_ways ? link_.both_ways_factor : 1;
      add(rate(direction) * own * factor, [&](CopyFlow const& flow) {
        return flow.device == device && flow.direction == direction;
      });
    }
    for (std::size_t group = 0; group < link_.groups.size(); ++group) {
      add(rate(direction), [&](CopyFlow const& flow) {
        return switch_of_[flow.device] == group && flow.direction == direction;
      });
    }
    add(link_.root_bytes_per_second,
        [&](CopyFlow const& flow) { return flow.direction == direction; });
  }
  add(link_.host_bytes_per_second, [](CopyFlow const&) { return true; });
  return limits;
}

}  // namespace roundpipe
