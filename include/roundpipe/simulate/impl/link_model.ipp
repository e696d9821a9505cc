// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/simulate/link_model.hpp>

#include <cmath>
#include <cstddef>
#include <set>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE void check(LinkModel const& link, std::size_t devices) {
  for (auto const value : {link.upload_bytes_per_second,
                           link.download_bytes_per_second,
                           link.peer_bytes_per_second,
                           link.latency_s,
                           link.root_upload_bytes_per_second,
                           link.root_download_bytes_per_second,
                           link.host_bytes_per_second}) {
    require(value >= 0 && std::isfinite(value),
            Errc::invalid_argument,
            "a link's rates and its latency must be finite and not negative");
  }
  for (auto const factor : {link.upload_share_both_ways,
                            link.download_share_both_ways,
                            link.upload_share_beside_work,
                            link.download_share_beside_work}) {
    require(factor > 0 && factor <= 1,
            Errc::invalid_argument,
            "a link's shares both ways, and beside the host's work, must be above 0 and at most 1");
  }
  require(link.host_download_weight > 0 && std::isfinite(link.host_download_weight),
          Errc::invalid_argument,
          "the weight of downloads in host memory must be finite and above 0");
  require(link.device_factors.empty() || link.device_factors.size() == devices,
          Errc::invalid_argument,
          "a link's factors must be given for every device or for none");
  for (auto const factor : link.device_factors) {
    require(factor > 0 && std::isfinite(factor),
            Errc::invalid_argument,
            "the factor of a device's link must be finite and above 0");
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
