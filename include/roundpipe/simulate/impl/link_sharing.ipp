// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/simulate/link_model.hpp>
#include <roundpipe/simulate/link_sharing.hpp>

#include <algorithm>
#include <array>
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
  auto const add = [&](double bytes_per_second) {
    limits_.push_back({bytes_per_second > 0 ? bytes_per_second : unlimited});
  };
  for (auto const direction : {CopyDirection::up, CopyDirection::down}) {
    for (std::size_t device = 0; device < devices; ++device) {
      add(rate(direction) * (link_.device_factors.empty() ? 1 : link_.device_factors[device]));
    }
    for (std::size_t group = 0; group < link_.groups.size(); ++group) {
      add(rate(direction));
    }
    add(direction == CopyDirection::up ? link_.root_upload_bytes_per_second
                                       : link_.root_download_bytes_per_second);
  }
  add(link_.host_bytes_per_second);
  for (std::size_t device = 0; device < devices; ++device) {
    add(rate(CopyDirection::peer));
  }
}

ROUNDPIPE_INLINE std::array<std::size_t, 4> LinkSharing::limits_of(
    CopyFlow const& flow) const noexcept {
  if (flow.direction == CopyDirection::peer) {
    return {host_limit() + 1 + flow.device, none, none, none};
  }
  auto const first = flow.direction == CopyDirection::up ? 0 : limits_one_way();
  auto const group = switch_of_[flow.device];
  return {first + flow.device,
          group == none ? none : first + switch_of_.size() + group,
          first + limits_one_way() - 1,
          host_limit()};
}

ROUNDPIPE_INLINE std::vector<double> LinkSharing::rates(std::span<CopyFlow const> flows) const {
  auto limits = limits_;
  std::vector<std::array<std::size_t, 4>> limits_by_flow;
  limits_by_flow.reserve(flows.size());
  for (auto const& flow : flows) {
    for (auto const i : limits_by_flow.emplace_back(limits_of(flow))) {
      if (i != none) {
        ++limits[i].flows;
        limits[i].weight += weight(flow.direction);
      }
    }
  }
  for (std::size_t device = 0; device < switch_of_.size(); ++device) {
    auto& up = limits[device];
    auto& down = limits[limits_one_way() + device];
    if (up.flows > 0 && down.flows > 0) {
      up.left *= link_.upload_share_both_ways;
      down.left *= link_.download_share_both_ways;
    }
  }
  std::vector<std::size_t> shared;  // limits of flows, ascending
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (limits[i].flows > 0 && limits[i].left != unlimited) {
      shared.push_back(i);
    }
  }
  std::vector<double> result(flows.size(), unlimited);
  for (;;) {
    auto tightest = none;
    auto share = unlimited;
    for (auto const i : shared) {
      if (limits[i].flows > 0 && limits[i].share() < share) {
        tightest = i;
        share = limits[i].share();
      }
    }
    if (tightest == none) {
      return result;
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      auto const& own = limits_by_flow[f];
      if (result[f] != unlimited || std::find(own.begin(), own.end(), tightest) == own.end()) {
        continue;
      }
      auto const own_weight = weight(flows[f].direction);
      result[f] = share * own_weight;
      for (auto const i : own) {
        if (i != none) {
          limits[i].left = std::max(0.0, limits[i].left - result[f]);
          limits[i].weight -= own_weight;
          --limits[i].flows;
        }
      }
    }
  }
}

}  // namespace roundpipe
