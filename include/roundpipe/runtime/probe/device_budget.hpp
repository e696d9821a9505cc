// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What of a device's memory budget is left for a plan.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>

#include <algorithm>
#include <cstddef>

namespace roundpipe {

/// A device's memory.
struct DeviceBudget {
  Bytes bytes = 0;              ///< What the process may hold.
  Bytes held = 0;               ///< What it holds besides a plan.
  double page_table_share = 0;  ///< What it takes in addition for each byte of host memory.

  /// What is left for a plan and its page tables.
  [[nodiscard]] Bytes free() const noexcept { return bytes - std::min(bytes, held); }
};

/// The budget of that of the first \p devices devices of \p list that has least left. \p wanted
/// counts all that the process holds of a device; 0: only the limit for slabs counts. Where no
/// layer has run, \p code_is_loaded is false, and the code still to come counts, too.
template <DeviceList D>
[[nodiscard]] DeviceBudget device_budget(D& list,
                                         std::size_t devices,
                                         Bytes wanted,
                                         bool code_is_loaded = true) {
  DeviceBudget least;
  for (std::size_t d = 0; d < devices; ++d) {
    DeviceId const device(d);
    DeviceBudget budget{.bytes = list.device_properties(device).memory_bytes};
    if (wanted > 0) {
      if constexpr (HasDeviceOverhead<D>) {
        budget.held = list.overhead_bytes(device);
      }
      if constexpr (HasUnloadedCode<D>) {
        budget.held += code_is_loaded ? 0 : D::unloaded_code_bytes;
      }
      if constexpr (HasPageTableShare<D>) {
        budget.page_table_share = D::page_table_share;
      }
      budget.bytes = std::min(wanted, budget.bytes + budget.held);
    }
    if (d == 0 || budget.free() < least.free()) {
      least = budget;
    }
  }
  return least;
}

}  // namespace roundpipe
