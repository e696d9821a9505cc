// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Checks that no two things that lie at the same bytes of a device are live at once.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/sequence_order.hpp>
#include <roundpipe/graph/verify.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_layout.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace roundpipe {

/// The stages of a graph.
using StagesOfGraph = std::function<std::span<StageLayout const>(ActionGraph const&)>;

/// \brief Checks where \p plan puts what the actions of an unrolled sequence use on the devices,
/// and returns at most \p most violations of \ref Rule::buffer_reuse.
///
/// A content is what an acquisition of a ring holds, or scratch while a stage computes a
/// micro-batch. It fills its place, lies within the arena, and is on its ring's device, also where
/// another device writes it. Of two contents that share bytes, all users of one must be over when
/// any user of the other begins, in every timing: `verify` says so of the contents of one entry,
/// this check of all that lies in a device's arena, parameters and boundaries that stay as well.
/// \p order is that of \p actions.
[[nodiscard]] std::vector<Violation> verify_places(std::span<UnrolledAction const> actions,
                                                   SequenceOrder const& order,
                                                   DeviceMemoryPlan const& plan,
                                                   StagesOfGraph const& stages,
                                                   std::size_t most = 16);

/// \throws Error (unsafe_graph) with the first violation, if there is any in \p sequence.
void require_apart(GraphSequence const& sequence,
                   DeviceMemoryPlan const& plan,
                   StagesOfGraph const& stages);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/place_check.ipp>
#endif
