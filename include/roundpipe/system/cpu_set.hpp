// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The CPUs that this process may use, by affinity mask and control group, which may be far
/// fewer than the machine has; their NUMA nodes; and threads pinned to them.
///
/// Elsewhere than on Linux: as many CPUs as the standard library says, one node, nothing is pinned.

#include <roundpipe/config.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
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

/// CPUs of a list as Linux writes it, such as "0-3,8,10-11". What is malformed is left out.
[[nodiscard]] std::vector<std::size_t> parse_cpu_list(std::string_view text);

inline constexpr double no_quota = std::numeric_limits<double>::infinity();

/// CPUs that "quota period" pays for, as cpu.max has it, both in microseconds; infinite when the
/// quota is "max" or negative, or the text is malformed.
[[nodiscard]] double parse_cpu_quota(std::string const& text);

/// CPUs that control groups leave to a process: the smallest quota of all \ref group_folders;
/// infinite without one.
[[nodiscard]] double cgroup_quota(std::string const& membership, std::string const& root);

/// \p cpus in the order of the NUMA nodes that \p folder (/sys/devices/system/node) lists; those of
/// no node come last, as of node 0.
[[nodiscard]] UsableCpus in_node_order(std::vector<std::size_t> cpus, std::string const& folder);

}  // namespace detail

/// What this process may use, read anew: the calling thread's affinity mask, the control group's
/// quota, the NUMA nodes.
[[nodiscard]] UsableCpus usable_cpus();

/// Lets the calling thread run on \p cpus alone. \returns whether the system did so: it refuses
/// CPUs that it lacks.
bool pin_this_thread([[maybe_unused]] std::span<std::size_t const> cpus) noexcept;

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/cpu_set.ipp>
#endif
