// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How much memory this process may take: the machine's, or its control group's.

#include <roundpipe/core/bytes.hpp>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace roundpipe {

/// The smaller of the machine's memory and the control group's limit, in bytes; the largest number
/// where neither can be read.
[[nodiscard]] inline Bytes host_memory_limit() {
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
