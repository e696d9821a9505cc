// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/system/control_groups.hpp>
#include <roundpipe/system/cpu_set.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::vector<std::size_t> parse_cpu_list(std::string_view text) {
  constexpr std::size_t most = std::size_t{1} << 16U;  // of a sane machine
  std::vector<std::size_t> cpus;
  while (!text.empty()) {
    auto const comma = std::min(text.find(','), text.size());
    auto const* const end = text.data() + comma;
    std::size_t first = 0;
    auto const parsed = std::from_chars(text.data(), end, first);
    auto last = first;
    auto good = parsed.ec == std::errc{};
    if (good && parsed.ptr != end && *parsed.ptr == '-') {
      good = std::from_chars(parsed.ptr + 1, end, last).ec == std::errc{};
    }
    for (auto cpu = first; good && cpu <= std::min(last, most); ++cpu) {
      cpus.push_back(cpu);
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return cpus;
}

ROUNDPIPE_INLINE double parse_cpu_quota(std::string const& text) {
  std::istringstream words(text);
  double quota = 0;
  double period = 0;
  return words >> quota >> period && quota > 0 && period > 0 ? quota / period : no_quota;
}

ROUNDPIPE_INLINE double cgroup_quota(std::string const& membership, std::string const& root) {
  auto const folders = group_folders(membership, root, "cpu");
  auto quota = no_quota;
  for (auto const& folder : folders.v2) {
    quota = std::min(quota, parse_cpu_quota(text_of(folder + "/cpu.max")));
  }
  for (auto const& folder : folders.v1) {
    quota = std::min(quota,
                     parse_cpu_quota(text_of(folder + "/cpu.cfs_quota_us") + " " +
                                     text_of(folder + "/cpu.cfs_period_us")));
  }
  return quota;
}

ROUNDPIPE_INLINE UsableCpus in_node_order(std::vector<std::size_t> cpus,
                                          std::string const& folder) {
  UsableCpus result;
  for (auto const node : parse_cpu_list(text_of(folder + "/online"))) {
    auto const list = text_of(folder + "/node" + std::to_string(node) + "/cpulist");
    for (auto const cpu : parse_cpu_list(list)) {
      if (std::erase(cpus, cpu) > 0) {
        result.cpus.push_back(cpu);
        result.nodes.push_back(node);
      }
    }
  }
  result.cpus.insert(result.cpus.end(), cpus.begin(), cpus.end());
  result.nodes.resize(result.cpus.size(), 0);
  return result;
}

/// The CPUs of the calling thread's affinity mask.
[[nodiscard]] ROUNDPIPE_INLINE std::vector<std::size_t> affinity_cpus() {
  std::vector<std::size_t> cpus;
#ifdef __linux__
  constexpr std::size_t most = 8192;   // Linux has no more
  cpu_set_t mask[most / CPU_SETSIZE];  // no vector: nvcc 13.0 fails on one of an unnamed struct
  auto const bytes = sizeof mask;
  if (sched_getaffinity(0, bytes, mask) == 0) {
    for (std::size_t cpu = 0; cpu < most; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, mask)) {
        cpus.push_back(cpu);
      }
    }
  }
#endif
  for (std::size_t cpu = 0; cpus.empty() && cpu < std::thread::hardware_concurrency(); ++cpu) {
    cpus.push_back(cpu);
  }
  if (cpus.empty()) {
    cpus.push_back(0);
  }
  return cpus;
}

}  // namespace detail

ROUNDPIPE_INLINE UsableCpus usable_cpus() {
  auto result = detail::in_node_order(detail::affinity_cpus(), "/sys/devices/system/node");
  auto const quota = detail::cgroup_quota(detail::text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  auto const cpus = static_cast<double>(result.cpus.size());
  result.threads = std::max<std::size_t>(1, static_cast<std::size_t>(std::min(quota, cpus)));
  return result;
}

ROUNDPIPE_INLINE bool pin_this_thread([[maybe_unused]] std::span<std::size_t const> cpus) noexcept {
#ifdef __linux__
  constexpr std::size_t sets = 8;
  cpu_set_t mask[sets];
  CPU_ZERO_S(sizeof mask, mask);
  for (auto const cpu : cpus) {
    if (cpu >= sets * CPU_SETSIZE) {
      return false;
    }
    CPU_SET_S(cpu, sizeof mask, mask);
  }
  return pthread_setaffinity_np(pthread_self(), sizeof mask, mask) == 0;
#else
  return false;
#endif
}

}  // namespace roundpipe
