// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What copies between the host and devices share: links, switches, a root, host memory.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>
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
void check(LinkModel const& link, std::size_t devices);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/link_model.ipp>
#endif
