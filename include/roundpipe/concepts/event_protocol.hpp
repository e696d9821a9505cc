// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What orders uploads, gradient writes, the optimizer and its copies across iterations.

#include <roundpipe/core/id.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe {

/// What can happen to a parameter block, as far as the ordering rules see it.
enum class BlockEventKind : std::uint8_t {
  upload,          ///< A device has read the master copy.
  gradient_write,  ///< A round's gradient has been added on the host.
  gradient_copy,   ///< G copy: the optimizer's own copy of the gradient is made.
  optimizer_step,  ///< The optimizer copy is updated.
  parameter_copy,  ///< P copy: the master copy is updated.
};

inline constexpr std::size_t block_event_kind_count = 5;

/// An edge's far end: *every* action of this kind on this block that was issued before.
struct BlockEvent {
  BlockId block;
  BlockEventKind kind = BlockEventKind::upload;

  friend constexpr auto operator<=>(BlockEvent const&, BlockEvent const&) noexcept = default;
  friend constexpr bool operator==(BlockEvent const&, BlockEvent const&) noexcept = default;
};

/// \brief The ordering rules, as the events that each action waits for.
///
/// Semantics:
/// 1. `before(action, blocks)` lists what an action of kind `action.kind` on block `action.block`
///    waits for, of a model with `blocks` blocks. The graph's builders add an edge for each entry;
///    actions of the same block in the same step that come earlier in the order upload,
///    gradient write, P copy of the step before, G copy, optimizer step, P copy of this step,
///    are meant, and where there are none in the same graph, those of earlier graphs.
/// 2. `staleness()` is 0 (iteration T+1 computes with the weights of step T) or 1 (with those of
///    step T-1, while step T runs). With staleness 1 the P copy of step T belongs to step T+1.
/// 3. `copies_gradients()`: whether the optimizer works on a G copy, so that the next iteration's
///    gradients may be written while it runs.
///
/// Satisfied by: `LayerEventProtocol`.
template <class P>
concept EventProtocol =
    std::copy_constructible<P> && requires(P const& protocol, BlockEvent action, std::size_t n) {
      { protocol.before(action, n) } -> std::same_as<std::vector<BlockEvent>>;
      { protocol.staleness() } -> std::convertible_to<int>;
      { protocol.copies_gradients() } -> std::convertible_to<bool>;
    };

}  // namespace roundpipe
