// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/simulate/link_fit.hpp>
#include <roundpipe/simulate/link_model.hpp>
#include <roundpipe/simulate/link_sharing.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// Bytes a second of all devices' copies in \p direction, while they copy; 0 without copies.
[[nodiscard]] ROUNDPIPE_INLINE double mean_copy_rate(Timeline const& timeline,
                                                     CopyDirection direction) {
  using Interval = std::pair<double, double>;
  std::vector<std::vector<Interval>> copies(timeline.devices);
  double bytes = 0;
  for (auto const& entry : timeline) {
    if (entry.bytes > 0 && copy_direction(entry.lane.kind) == direction) {
      copies[entry.lane.device.index()].emplace_back(entry.start_s, entry.end_s);
      bytes += static_cast<double>(entry.bytes);
    }
  }
  double seconds = 0;  // in which a device copies, on however many lanes
  for (auto& of_device : copies) {
    std::sort(of_device.begin(), of_device.end());
    auto until = of_device.empty() ? 0 : of_device.front().first;
    for (auto const& [start, end] : of_device) {
      seconds += std::max(0.0, end - std::max(start, until));
      until = std::max(until, end);
    }
  }
  return seconds > 0 ? bytes / seconds : 0;
}

}  // namespace detail

ROUNDPIPE_INLINE LinkModel fit_link(LinkModel link,
                                    Timeline const& measured,
                                    Timeline const& simulated) {
  auto const factor = [&](CopyDirection direction) {
    auto const found = detail::mean_copy_rate(measured, direction);
    auto const expected = detail::mean_copy_rate(simulated, direction);
    return found > 0 && expected > 0 ? found / expected : 1;
  };
  auto const up = factor(CopyDirection::up);
  auto const down = factor(CopyDirection::down);
  link.upload_bytes_per_second *= up;
  link.download_bytes_per_second *= down;
  link.root_upload_bytes_per_second *= up;
  link.root_download_bytes_per_second *= down;
  auto const weight = link.host_download_weight;
  link.host_bytes_per_second *= (up + down * weight) / (1 + weight);
  link.host_download_weight *= down / up;
  return link;
}

}  // namespace roundpipe
