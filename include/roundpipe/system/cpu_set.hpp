// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The CPUs that this process may use, by affinity mask and control group, which may be far
/// fewer than the machine has; their NUMA nodes; and threads pinned to them.
///
/// Elsewhere than on Linux: as many CPUs as the standard library says, one node, nothing is pinned.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#ifdef __linux__
#  include <pthread.h>
#  include <sched.h>
#endif

namespace roundpipe {

/// What this process may use.
struct UsableCpus {
  std::vector<std::size_t> cpus;   ///< The machine's numbers, in the order of NUMA nodes.
  std::vector<std::size_t> nodes;  ///< The node of each of \c cpus.
  /// How many threads can run all the time: \c cpus, or what a control group's quota pays for,
  /// rounded down; at least 1.
  std::size_t threads = 1;
};

namespace detail {

/// The text of a file; empty when it cannot be read.
[[nodiscard]] inline std::string text_of(std::filesystem::path const& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// CPUs of a list as Linux writes it, such as "0-3,8,10-11". What is malformed is left out.
[[nodiscard]] inline std::vector<std::size_t> parse_cpu_list(std::string_view text) {
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

inline constexpr double no_quota = std::numeric_limits<double>::infinity();

/// CPUs that "quota period" pays for, as cpu.max has it, both in microseconds; infinite when the
/// quota is "max" or negative, or the text is malformed.
[[nodiscard]] inline double parse_cpu_quota(std::string const& text) {
  std::istringstream words(text);
  double quota = 0;
  double period = 0;
  return words >> quota >> period && quota > 0 && period > 0 ? quota / period : no_quota;
}

/// The smallest quota of the groups from \p group, a path below \p mount, up to the root.
template <class F>
[[nodiscard]] double quota_along(std::filesystem::path const& mount,
                                 std::string_view group,
                                 F const& quota_of) {
  auto quota = no_quota;
  for (;;) {
    while (group.ends_with('/')) {
      group.remove_suffix(1);
    }
    quota = std::min(quota, quota_of(mount / group.substr(std::min<std::size_t>(1, group.size()))));
    if (group.empty()) {
      return quota;
    }
    group = group.substr(0, std::min(group.rfind('/'), group.size() - 1));
  }
}

/// CPUs that control groups leave to a process whose /proc/self/cgroup reads \p membership, with
/// the groups' file systems at \p root; infinite without a limit. Reads versions 1 and 2. In a
/// container the process's group may have no folder of its name: the root's is looked at, too.
[[nodiscard]] inline double cgroup_quota(std::string const& membership,
                                         std::filesystem::path const& root) {
  auto quota = no_quota;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // number:controllers:group
    auto const controllers_at = line.find(':') + 1;
    auto const group_at = line.find(':', controllers_at) + 1;
    if (controllers_at == 0 || group_at == 0) {
      continue;
    }
    auto const controllers = line.substr(controllers_at, group_at - 1 - controllers_at);
    auto const group = std::string_view(line).substr(group_at);
    if (controllers.empty()) {
      for (auto const& mount : {root, root / "unified"}) {
        quota = std::min(quota, quota_along(mount, group, [](std::filesystem::path const& folder) {
                           return parse_cpu_quota(text_of(folder / "cpu.max"));
                         }));
      }
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      for (auto const& mount : {root / controllers, root / "cpu"}) {
        quota = std::min(quota, quota_along(mount, group, [](std::filesystem::path const& folder) {
                           return parse_cpu_quota(text_of(folder / "cpu.cfs_quota_us") + " " +
                                                  text_of(folder / "cpu.cfs_period_us"));
                         }));
      }
    }
  }
  return quota;
}

/// \p cpus in the order of the NUMA nodes that \p folder (/sys/devices/system/node) lists; those of
/// no node come last, as of node 0.
[[nodiscard]] inline UsableCpus in_node_order(std::vector<std::size_t> cpus,
                                              std::filesystem::path const& folder) {
  UsableCpus result;
  for (auto const node : parse_cpu_list(text_of(folder / "online"))) {
    auto const list = text_of(folder / ("node" + std::to_string(node)) / "cpulist");
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
[[nodiscard]] inline std::vector<std::size_t> affinity_cpus() {
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

/// What this process may use, read anew: the calling thread's affinity mask, the control group's
/// quota, the NUMA nodes.
[[nodiscard]] inline UsableCpus usable_cpus() {
  auto result = detail::in_node_order(detail::affinity_cpus(), "/sys/devices/system/node");
  auto const quota = detail::cgroup_quota(detail::text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  auto const cpus = static_cast<double>(result.cpus.size());
  result.threads = std::max<std::size_t>(1, static_cast<std::size_t>(std::min(quota, cpus)));
  return result;
}

/// Lets the calling thread run on \p cpus alone. \returns whether the system did so: it refuses
/// CPUs that it lacks.
inline bool pin_this_thread([[maybe_unused]] std::span<std::size_t const> cpus) noexcept {
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
