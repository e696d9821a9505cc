// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/system/host_memory_limit.hpp>
#include <roundpipe/system/resident_set.hpp>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE Bytes host_memory_limit() {
  constexpr Bytes kernel_part = 25;
  auto const without_kernel = [](Bytes limit) { return limit - limit / kernel_part; };
  auto limit = std::numeric_limits<Bytes>::max();
  std::ifstream machine("/proc/meminfo");
  for (std::string word; machine >> word;) {
    if (word == "MemAvailable:") {
      if (Bytes kib = 0; machine >> kib) {
        limit = without_kernel((kib << 10U) + resident_set_bytes());
      }
      break;
    }
  }
  for (auto const* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream group(path);
    if (Bytes bytes = 0; group >> bytes) {  // "max" is no number: no limit
      limit = std::min(limit, without_kernel(bytes));
    }
  }
  return limit;
}

}  // namespace roundpipe
