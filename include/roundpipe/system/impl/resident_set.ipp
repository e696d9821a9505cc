// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/system/resident_set.hpp>

#include <fstream>
#include <unistd.h>

namespace roundpipe {

ROUNDPIPE_INLINE Bytes resident_set_bytes() {
  std::ifstream file("/proc/self/statm");  // in pages
  Bytes mapped = 0;
  Bytes resident = 0;
  file >> mapped >> resident;
  return resident * static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
}

}  // namespace roundpipe
