// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/system/control_groups.hpp>
#include <roundpipe/system/host_memory_limit.hpp>
#include <roundpipe/system/resident_set.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <system_error>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE Bytes parse_memory_limit(std::string const& text) {
  constexpr Bytes least_unlimited = Bytes{1} << 62U;
  auto const* const end = text.data() + std::min(text.find('\n'), text.size());
  Bytes bytes = 0;
  auto const parsed = std::from_chars(text.data(), end, bytes);
  bool const good = parsed.ec == std::errc{} && parsed.ptr == end;
  return good && bytes < least_unlimited ? bytes : no_memory_limit;
}

ROUNDPIPE_INLINE Bytes cgroup_memory_limit(std::string const& membership, std::string const& root) {
  auto const folders = group_folders(membership, root, "memory");
  auto limit = no_memory_limit;
  for (auto const& folder : folders.v2) {
    limit = std::min(limit, parse_memory_limit(text_of(folder + "/memory.max")));
  }
  for (auto const& folder : folders.v1) {
    limit = std::min(limit, parse_memory_limit(text_of(folder + "/memory.limit_in_bytes")));
  }
  return limit;
}

}  // namespace detail

ROUNDPIPE_INLINE Bytes host_memory_limit() {
  constexpr Bytes kernel_part = 25;
  auto limit = detail::cgroup_memory_limit(detail::text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  std::ifstream machine("/proc/meminfo");
  for (std::string word; machine >> word;) {
    if (word == "MemAvailable:") {
      if (Bytes kib = 0; machine >> kib) {
        limit = std::min(limit, (kib << 10U) + resident_set_bytes());
      }
      break;
    }
  }
  return limit == detail::no_memory_limit ? limit : limit - limit / kernel_part;
}

}  // namespace roundpipe
