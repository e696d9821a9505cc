// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which threads of a pipeline run on which CPUs.

#include <roundpipe/config.hpp>
#include <roundpipe/system/cpu_set.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// Threads and the CPUs that they are pinned to; without CPUs they are not pinned.
struct CpuPlan {
  std::size_t optimizer_threads = 1;
  UsableCpus optimizer;              ///< Spread over by the optimizer's threads.
  std::vector<std::size_t> issuing;  ///< By device: the CPU on which its compute is issued.
};

/// Plans for \p devices issuing threads on \p cpus. With \p optimizer_threads 0, the optimizer gets
/// a thread for each CPU that no issuing thread needs, and issuing threads, which must answer at
/// once, keep CPUs of their own; where there are too few for that, or a number is asked for,
/// nothing is pinned.
[[nodiscard]] CpuPlan plan_cpus(UsableCpus cpus,
                                std::size_t devices,
                                std::size_t optimizer_threads);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/cpu_plan.ipp>
#endif
