// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Checks the arguments of a group's operations.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/config.hpp>

#include <cstddef>
#include <span>

namespace roundpipe::detail {

/// \throws Error (invalid_argument) unless \p all has room for \p mine of each of \p ranks ranks.
void check_gather(std::size_t ranks, ConstHostBytes mine, HostBytes all);

/// \throws Error (invalid_argument) unless both lists have an entry for each of \p ranks ranks, and
///         those of \p rank, which go to itself, the same size.
void check_exchange(std::size_t rank,
                    std::size_t ranks,
                    std::span<ConstHostBytes const> mine,
                    std::span<HostBytes const> theirs);

/// \throws Error (invalid_argument) unless \p root is one of \p ranks ranks.
void check_root(std::size_t ranks, std::size_t root);

/// Copies all of \p from to \p to.
void copy_bytes(ConstHostBytes from, HostBytes to) noexcept;

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/hosts/impl/group_checks.ipp>
#endif
