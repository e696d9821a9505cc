// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What this process may hold of each device, for what takes memory beside slabs.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/other_processes.hpp>

#include <algorithm>
#include <map>
#include <mutex>

namespace roundpipe::cu {

/// The limits of all backends that share resources. Any thread may call any member.
class MemoryLimits {
 public:
  /// From now on, the process may hold \p most bytes of \p device; 0: all that there is.
  void set(DeviceId device, Bytes most) {
    std::lock_guard const lock(mutex_);
    limits_[device] = most;
  }

  /// What the process may still take of \p device, by the driver's count of now.
  [[nodiscard]] Bytes left(DeviceId device) const {
    auto const free = memory_info(device).free_bytes;
    auto const most = limit(device);
    return most == 0 ? free : std::min(free, most - std::min(most, held_bytes(device)));
  }

 private:
  [[nodiscard]] Bytes limit(DeviceId device) const {
    std::lock_guard const lock(mutex_);
    auto const found = limits_.find(device);
    return found == limits_.end() ? 0 : found->second;
  }

  mutable std::mutex mutex_;
  std::map<DeviceId, Bytes> limits_;
};

}  // namespace roundpipe::cu
