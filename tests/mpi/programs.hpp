// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the program of tests/mpi can do on each rank: `mpi_ranks NAME ARGUMENT...`. Each
/// returns the exit status, and may throw.

#include <span>

namespace roundpipe::test {

using Arguments = std::span<char const* const>;

int process_group(Arguments arguments);
int ranks_equal_serial(Arguments arguments);
int kill_a_rank(Arguments arguments);
int resident_memory(Arguments arguments);

}  // namespace roundpipe::test
