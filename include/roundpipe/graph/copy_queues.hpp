// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Finds activation copies that may queue behind a chunk although they must go first.

#include <roundpipe/config.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/sequence_order.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

/// The pairs of an activation copy and a gated chunk of the same direction and device that \p order
/// does not keep in this order, although the copy is due before, or in, the chunk's window.
[[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> overtaken_copies(
    std::span<UnrolledAction const> actions, SequenceOrder const& order);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/graph/impl/copy_queues.ipp>
#endif
