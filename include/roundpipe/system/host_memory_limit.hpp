// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How much memory this process may take.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>

namespace roundpipe {

/// In bytes: what this process holds and what the machine has available beside it, at most its
/// control group's limit; of that 24 parts of 25, for the kernel keeps books of pinned pages, which
/// no ledger lists. The largest number where neither can be read.
[[nodiscard]] Bytes host_memory_limit();

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/host_memory_limit.ipp>
#endif
