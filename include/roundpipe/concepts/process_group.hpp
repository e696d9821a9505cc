// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The ranks of a training on several hosts, and how bytes go between them.

#include <roundpipe/core/span.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace roundpipe {

/// The purpose of an operation. Operations of one channel are done in order, those of different
/// channels do not wait for each other.
enum class GroupChannel : std::uint8_t {
  control,    ///< Of the thread that drives a training: losses, checks.
  gradients,  ///< Of the lane that reduces gradients.
  norms,      ///< Of the optimizer's lane: sums of squares of gradients.
  weights,    ///< Of the lane that gathers updated weights.
  snapshots,  ///< Of what writes snapshots, beside the training.
};

inline constexpr std::size_t group_channel_count = 5;

/// Memory that an operation reads.
using ConstHostBytes = HostSpan<std::byte const>;

/// \brief Processes, one a host or one a part of a host's devices, that train one model together.
///
/// Semantics:
/// 1. `size()` processes, the *ranks*, have the numbers 0 to `size()` - 1; `rank()` is the own one.
///    Neither changes.
/// 2. An operation is a call on every rank. On one channel all ranks call the same operations in
///    the same order, with the sizes that the rules below ask for. A group that notices a
///    difference throws and ends as by rule 8; it need not notice.
/// 3. `gather(channel, mine, all)`: \c mine has the same size on all ranks, \c all `size()` times
///    that. On every rank \c all becomes the parts of ranks 0, 1, ... one behind another.
/// 4. `exchange(channel, mine, theirs)`: both lists have `size()` entries. What rank r has as
///    `mine[s]` becomes `theirs[r]` on rank s; both have the same size, which may be 0.
/// 5. `broadcast(channel, root, bytes)`: \c bytes becomes on all ranks what rank \c root has.
/// 6. `barrier(channel)` returns when all ranks have called it.
/// 7. Operations block until their result is there, and the memory of their arguments is the
///    caller's again. What is written and what is read must not overlap. Any thread may call
///    operations, one at a time on a channel; reason: lanes must not wait for each other.
/// 8. `abort(reason)` ends the group on all ranks, for good: operations under way and later ones
///    throw `Error` (aborted), whose message names the rank that called and its reason. So does
///    `rethrow()`, which does nothing before. The first call wins; any thread may call both at any
///    time. `abort` does not block for other ranks.
/// 9. Bytes arrive as they were sent: a group computes nothing. Sums are made by who receives
///    (\ref GradientReducer), in the order of ranks; reason: they have the same bits on every rank
///    and with every group.
/// 10. A group outlives what uses it. Destroying one does not end the others' operations: a rank
///     that leaves before the others are done calls `abort`.
///
/// Satisfied by: `SingleProcess`, `LoopbackGroup`, `MpiGroup`, `NcclGroup`, `AnyProcessGroup`.
template <class G>
concept ProcessGroup = requires(G& group,
                                G const& known,
                                GroupChannel channel,
                                ConstHostBytes mine,
                                HostBytes all,
                                std::span<ConstHostBytes const> parts,
                                std::span<HostBytes const> theirs,
                                std::size_t root,
                                std::string const& reason) {
  { known.rank() } -> std::convertible_to<std::size_t>;
  { known.size() } -> std::convertible_to<std::size_t>;
  group.gather(channel, mine, all);
  group.exchange(channel, parts, theirs);
  group.broadcast(channel, root, all);
  group.barrier(channel);
  group.abort(reason);
  group.rethrow();
};

}  // namespace roundpipe
