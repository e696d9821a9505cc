// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How much of the host's memory this process holds.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>

namespace roundpipe {

/// The resident set in bytes, pinned memory included; 0 where the system does not tell.
[[nodiscard]] Bytes resident_set_bytes();

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/resident_set.ipp>
#endif
