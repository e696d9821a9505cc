// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/backend/host_options.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>

#include <cmath>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void check_options(HostBackendOptions const& options) {
  auto const sane = [](double value) { return std::isfinite(value) && value >= 0; };
  require(options.devices > 0, Errc::invalid_argument, "a host backend needs at least one device");
  require(sane(options.link.upload_bytes_per_second) &&
              sane(options.link.download_bytes_per_second) &&
              sane(options.link.peer_bytes_per_second) && sane(options.root_bytes_per_second),
          Errc::invalid_argument,
          "a transfer rate is negative or not finite; 0 means unlimited");
  require(sane(options.link.latency_seconds) && options.link.latency_seconds <= 86400,
          Errc::invalid_argument,
          "the latency of a link is negative or more than a day");
}

}  // namespace detail

}  // namespace roundpipe
