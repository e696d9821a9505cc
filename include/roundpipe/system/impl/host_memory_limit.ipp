// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/system/host_memory_limit.hpp>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE Bytes host_memory_limit() {
  auto limit = std::numeric_limits<Bytes>::max();
  std::ifstream machine("/proc/meminfo");
  for (std::string word; machine >> word;) {
    if (word == "MemTotal:") {
      if (Bytes kib = 0; machine >> kib) {
        limit = kib << 10U;
      }
      break;
    }
  }
  for (auto const* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream group(path);
    if (Bytes bytes = 0; group >> bytes) {  // "max" is no number: no limit
      limit = std::min(limit, bytes);
    }
  }
  return limit;
}

}  // namespace roundpipe
