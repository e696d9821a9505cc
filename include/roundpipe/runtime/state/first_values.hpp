// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Gives all parameters their first values, close to the threads that will update them.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstdint>

namespace roundpipe {

/// Moves what updates work on to the workers of \p pool, and writes the first values that \p seed
/// gives to all copies.
void set_first_values(ParameterMemory const& memory, std::uint64_t seed, WorkerPool& pool);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/first_values.ipp>
#endif
