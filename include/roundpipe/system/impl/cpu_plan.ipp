// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/system/cpu_plan.hpp>
#include <roundpipe/system/cpu_set.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE CpuPlan plan_cpus(UsableCpus cpus,
                                   std::size_t devices,
                                   std::size_t optimizer_threads) {
  CpuPlan plan;
  if (optimizer_threads > 0) {
    plan.optimizer_threads = optimizer_threads;
    return plan;
  }
  auto const usable = std::min(cpus.threads, cpus.cpus.size());
  if (usable <= devices + 1 || usable < cpus.cpus.size()) {
    // Under a quota CPUs are shared with others, so that a fixed one might be the busy one.
    plan.optimizer_threads = std::max<std::size_t>(1, usable > devices ? usable - devices : 1);
    return plan;
  }
  auto const kept = cpus.cpus.size() - devices;
  plan.issuing.assign(cpus.cpus.begin() + static_cast<std::ptrdiff_t>(kept), cpus.cpus.end());
  cpus.cpus.resize(kept);
  cpus.nodes.resize(std::min(cpus.nodes.size(), kept));
  cpus.threads = kept;
  plan.optimizer_threads = kept;
  plan.optimizer = std::move(cpus);
  return plan;
}

}  // namespace roundpipe
