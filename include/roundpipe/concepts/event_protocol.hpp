// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The rules that order uploads, gradient writes, optimizer steps and P copies across
/// iterations.

#include <roundpipe/core/id.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe {

/// The events of a parameter block that the ordering rules know.
enum class BlockEventKind : std::uint8_t {
  upload,          ///< A device has read the master copy.
  gradient_write,  ///< A gradient has arrived on the host, or was added to the sum there.
  optimizer_step,  ///< The optimizer has read the gradient and updated the optimizer copy.
  parameter_copy,  ///< P copy: the master copy has been updated, often by the optimizer step
                   ///< itself.
};

inline constexpr std::size_t block_event_kind_count = 4;

/// The far end of an edge: *every* earlier action of this kind on this block, in iterations that
/// are at least \c age older than the iteration of the waiting action. Iteration t ends with step
/// t. A call belongs to the iteration of the next step.
struct BlockEvent {
  BlockId block;
  BlockEventKind kind = BlockEventKind::upload;
  std::size_t age = 0;  ///< 0, 1 or 2.

  friend constexpr auto operator<=>(BlockEvent const&, BlockEvent const&) noexcept = default;
  friend constexpr bool operator==(BlockEvent const&, BlockEvent const&) noexcept = default;
};

/// \brief The ordering rules: the events that each action waits for.
///
/// Semantics:
/// 1. `before(action, blocks)` lists what an action of kind `action.kind` on block `action.block`
///    waits for, in a model with `blocks` blocks. The graph builders add an edge for each entry. An
///    entry means actions of this kind and block that come earlier in the same graph (in a step,
///    all P copies come before all optimizer steps), or, where there are none, those of earlier
///    graphs. Entries name one of the model's blocks, and an age of 0, 1 or 2.
/// 2. `staleness()` is 0 (iteration T+1 computes with the weights of step T) or 1 (iteration T+1
///    computes with the weights of step T-1 while step T runs).
/// 3. `master_copies()` is 1 or 2. With 2 and staleness 1, step T writes copy T mod 2 while
///    iteration T+1 reads the other copy.
/// 4. `gradient_buffers()` is 1 or 2. With 2, iteration T writes buffer T mod 2, so that iteration
///    T+1 may write gradients while step T still reads.
/// 5. With staleness 1 and one master copy (see \ref copies_parameters), P copies are separate
///    actions, and step T+1 contains the P copy of step T. Otherwise the optimizer step writes the
///    master copy itself: the step also counts as the event `parameter_copy`, and `before` is asked
///    about `optimizer_step` only.
///
/// Satisfied by: `LayerEventProtocol`, `BlockingProtocol`.
template <class P>
concept EventProtocol =
    std::copy_constructible<P> && requires(P const& protocol, BlockEvent action, std::size_t n) {
      { protocol.before(action, n) } -> std::same_as<std::vector<BlockEvent>>;
      { protocol.staleness() } -> std::convertible_to<int>;
      { protocol.master_copies() } -> std::convertible_to<std::size_t>;
      { protocol.gradient_buffers() } -> std::convertible_to<std::size_t>;
    };

/// Whether P copies are separate actions.
template <EventProtocol P>
[[nodiscard]] constexpr bool copies_parameters(P const& protocol) {
  return protocol.staleness() == 1 && protocol.master_copies() == 1;
}

}  // namespace roundpipe
