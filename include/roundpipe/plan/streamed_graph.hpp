// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Builds the graph of one call from stages, slots, chunks and the ordering rules.

#include <roundpipe/config.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/plan/call_context.hpp>

namespace roundpipe {

/// Builds the graph of one call. Slot after slot and window after window, actions are added in the
/// order in which they are issued: on the links to and from a device, activations go first.
/// \throws Error (unsupported, invalid_argument) as \ref order_slots does; (invalid_argument) as
///         \ref cut_stage does; (unsupported) when the schedule runs the rounds of a stage out of
///         order, or lands gradients before those of the round before are summed.
[[nodiscard]] ActionGraph build_streamed_graph(StreamedGraphInput const& input);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/streamed_graph.ipp>
#endif
