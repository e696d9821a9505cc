// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Whether mpirun has started this process, and as which one of its host.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>

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

namespace detail {

/// The number in the first of \p variables that is set; \p otherwise where none is.
[[nodiscard]] inline std::size_t number_in(std::initializer_list<char const*> variables,
                                           std::size_t otherwise) noexcept {
  for (auto const* const name : variables) {
    if (auto const* const text = std::getenv(name)) {  // NOLINT(concurrency-mt-unsafe)
      return std::strtoull(text, nullptr, 10);
    }
  }
  return otherwise;
}

}  // namespace detail

/// The number of this process among those that a launcher has started on its host, by the variables
/// of Open MPI, MPICH and Slurm; 0 where none is set.
[[nodiscard]] inline std::size_t local_rank() noexcept {
  return detail::number_in({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, 0);
}

/// How many processes a launcher has started on this host; 1 where no variable says.
[[nodiscard]] inline std::size_t local_size() noexcept {
  return detail::number_in(
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}, 1);
}

}  // namespace roundpipe
