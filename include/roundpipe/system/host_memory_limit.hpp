// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How much memory this process may take.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>

#include <limits>
#include <string>

namespace roundpipe {

namespace detail {

inline constexpr Bytes no_memory_limit = std::numeric_limits<Bytes>::max();

/// The bytes of a limit as memory.max or memory.limit_in_bytes has it; \ref no_memory_limit when
/// the text is "max" or malformed, or the number with which version 1 says so: 2^63, rounded down
/// to a page.
[[nodiscard]] Bytes parse_memory_limit(std::string const& text);

/// The bytes that control groups leave to a process: the smallest limit of all \ref group_folders;
/// \ref no_memory_limit without one.
[[nodiscard]] Bytes cgroup_memory_limit(std::string const& membership, std::string const& root);

}  // namespace detail

/// In bytes: what this process holds and what the machine has available beside it, at most the
/// smallest limit of its control group and those around it; of that 24 parts of 25, for the kernel
/// keeps books of pinned pages, which no ledger lists. The largest number where neither can be
/// read.
[[nodiscard]] Bytes host_memory_limit();

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/host_memory_limit.ipp>
#endif
