// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The resident memory of this process, as the system reports it.

#include <roundpipe/core/bytes.hpp>

#include <fstream>
#include <string>
#include <string_view>

namespace roundpipe::test {

/// Whether a sanitizer holds memory of its own, so that \ref resident_bytes says little.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool has_shadow_memory = true;
#else
inline constexpr bool has_shadow_memory = false;
#endif

/// Bytes of this process that are in memory; 0 if the system does not say. \p kind: a line of
/// /proc/self/status, as "RssAnon:" for those that are its own and no pages of files or shared.
inline Bytes resident_bytes(std::string_view kind = "VmRSS:") {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == kind) {
      Bytes kib = 0;
      status >> kib;
      return kib << 10U;
    }
  }
  return 0;
}

}  // namespace roundpipe::test
