// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How much memory this process may take: the machine's, or its control group's.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>

namespace roundpipe {

/// The smaller of the machine's memory and the control group's limit, in bytes; the largest number
/// where neither can be read.
[[nodiscard]] Bytes host_memory_limit();

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/host_memory_limit.ipp>
#endif
