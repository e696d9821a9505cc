// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Whether devices copy to each other's memory.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>

#include <algorithm>
#include <cstddef>
#include <ranges>

namespace roundpipe {

/// Whether each of the first \p count of \p devices copies to the memory of all others.
template <DeviceList D>
[[nodiscard]] bool reach_peers(D& devices, std::size_t count) {
  if constexpr (Backend<D>) {
    if constexpr (!CopiesToPeers<typename D::Stream>) {
      return false;
    }
  }
  return std::ranges::all_of(std::views::iota(std::size_t{0}, count), [&](std::size_t d) {
    return devices.device_properties(DeviceId(d)).reaches_peers;
  });
}

}  // namespace roundpipe
