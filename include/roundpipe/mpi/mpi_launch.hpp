// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Whether mpirun has started this process.

#include <algorithm>
#include <array>
#include <cstdlib>

namespace roundpipe {

/// Whether a launcher of MPI has started this process, so that there are ranks to join: the
/// variables say so that Open MPI (mpirun), MPICH (mpiexec) and PMIx (srun) set for each rank. A
/// program then runs alone without MPI, which would take its time to begin.
[[nodiscard]] inline bool is_under_mpirun() noexcept {
  constexpr std::array variables{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
  return std::any_of(variables.begin(), variables.end(), [](char const* name) {
    return std::getenv(name) != nullptr;  // NOLINT(concurrency-mt-unsafe)
  });
}

}  // namespace roundpipe
