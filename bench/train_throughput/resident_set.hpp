// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief How much of the host's memory this process holds.

#include <roundpipe/core/bytes.hpp>

#include <fstream>
#include <unistd.h>

namespace train_throughput {

/// The resident set, pinned memory included; 0 where the system does not tell.
[[nodiscard]] inline roundpipe::Bytes resident_set_bytes() {
  std::ifstream file("/proc/self/statm");
  roundpipe::Bytes mapped_pages = 0;
  roundpipe::Bytes resident_pages = 0;
  file >> mapped_pages >> resident_pages;
  return resident_pages * static_cast<roundpipe::Bytes>(::sysconf(_SC_PAGESIZE));
}

}  // namespace train_throughput
