// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What copies between the host and devices share: links, switches, a root, host memory.

#include <roundpipe/core/error.hpp>

#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace roundpipe {

/// Rates in bytes per second; 0 is unlimited. Directions are limited apart, but by host memory.
struct LinkModel {
  double upload_bytes_per_second = 0;    ///< Of one device's link, host to device.
  double download_bytes_per_second = 0;  ///< Device to host.
  double latency_s = 0;                  ///< Of a copy: its engine is taken, its link is free.
  /// What is left of a link's rates while it is used both ways, in (0, 1].
  double both_ways_factor = 1;
  /// By device, what its link's rates are multiplied with; none: all 1.
  std::vector<double> device_factors = {};
  /// Devices behind one switch, whose one link to the root is as fast as a device's: a list of
  /// devices for each switch. Devices in no list have no switch.
  std::vector<std::vector<std::size_t>> groups = {};
  double root_bytes_per_second = 0;  ///< All devices together, each way.
  double host_bytes_per_second = 0;  ///< All devices together, both ways: the host's memory.
};

/// \throws Error (invalid_argument) for rates and times that are negative or not finite, a factor
/// for both ways out of (0, 1], factors of devices that are not positive or not one each, or groups
/// that name a device twice or one of none of \p devices.
inline void check(LinkModel const& link, std::size_t devices) {
  for (auto const value : {link.upload_bytes_per_second,
                           link.download_bytes_per_second,
                           link.latency_s,
                           link.root_bytes_per_second,
                           link.host_bytes_per_second}) {
    require(value >= 0 && std::isfinite(value),
            Errc::invalid_argument,
            "a link's rates and its latency are finite and not negative");
  }
  require(link.both_ways_factor > 0 && link.both_ways_factor <= 1,
          Errc::invalid_argument,
          "a link's factor for both ways lies above 0 and is at most 1");
  require(link.device_factors.empty() || link.device_factors.size() == devices,
          Errc::invalid_argument,
          "a link's factors are given for every device or for none");
  for (auto const factor : link.device_factors) {
    require(factor > 0 && std::isfinite(factor),
            Errc::invalid_argument,
            "a device's link has a factor that is finite and above 0");
  }
  std::set<std::size_t> known;
  for (auto const& group : link.groups) {
    for (auto const device : group) {
      if (device >= devices || !known.insert(device).second) {
        throw Error(Errc::invalid_argument,
                    "a link's groups name device " + std::to_string(device) +
                        (device >= devices ? ", but there are " + std::to_string(devices)
                                           : " more than once"));
      }
    }
  }
}

}  // namespace roundpipe
