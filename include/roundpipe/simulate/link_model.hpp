// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The resources that copies between the host and devices share: links, switches, a root,
/// host memory.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// Rates in bytes per second; 0 is unlimited. Except for host memory, each direction has its own
/// limit.
struct LinkModel {
  double upload_bytes_per_second = 0;    ///< Of one device's link, host to device.
  double download_bytes_per_second = 0;  ///< Device to host.
  double peer_bytes_per_second = 0;      ///< From one device to all others; uses nothing else.
  double latency_s = 0;                  ///< Of a copy: occupies its engine, but not its link.
  /// The shares of a link's rates that remain while the link is used both ways, in (0, 1].
  double upload_share_both_ways = 1;
  double download_share_both_ways = 1;
  /// By device, the factor of its link's rates; empty: all 1.
  std::vector<double> device_factors = {};
  /// Devices behind one switch: a list of devices for each switch. The single link from a switch to
  /// the root is as fast as the link of a device. Devices in no list have no switch.
  std::vector<std::vector<std::size_t>> groups = {};
  /// All devices together, each way: one H200's link carries 55 GB/s down, and two of a host
  /// together 88 to 98.
  double root_upload_bytes_per_second = 0;
  double root_download_bytes_per_second = 0;
  double host_bytes_per_second = 0;  ///< All devices together, both directions: the host's memory.
  /// What the host's memory gives a download where it gives an upload 1, above 0. Two H100s that
  /// copy both ways share 158 GB/s: 49 down and 30 up for each.
  double host_download_weight = 1;
  /// The shares of their rates that remain to copies while the host's lanes work, in (0, 1]. Sums
  /// of gradients slow one H200's uploads from 49 to 40 GB/s and its downloads from 51.0 to 50.6,
  /// but two H100s' downloads from 48 to 37.
  double upload_share_beside_work = 1;
  double download_share_beside_work = 1;
  /// Whether a lane that has its next copy ready when one ends goes on before other lanes.
  bool streams_keep_engines = false;
};

/// \throws Error (invalid_argument) for rates and times that are negative or not finite, a
/// both-ways factor or a share outside (0, 1], device factors that are not positive or not one for
/// each device, or groups that repeat a device or name one beyond \p devices.
void check(LinkModel const& link, std::size_t devices);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/link_model.ipp>
#endif
