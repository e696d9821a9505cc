// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/runtime/execute/host_lane_traits.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE std::size_t position_of(LaneKind kind, std::span<HostLaneTraits const> lanes) {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i].kind == kind) {
      return i;
    }
  }
  throw Error(Errc::unsupported,
              std::string("a graph has actions on lane '") + name_of(kind) +
                  "' of the host, for which the executor was given no work");
}

}  // namespace roundpipe
