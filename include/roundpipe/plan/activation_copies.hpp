// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The part of a call's graph that copies boundaries, their gradients, side inputs and
/// losses.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/plan/call_context.hpp>

#include <cstddef>

namespace roundpipe::detail {

/// Adds the copies of activations, as early as the rings' entries let them go up.
class ActivationCopies {
 public:
  /// \p call must outlive this.
  explicit ActivationCopies(CallContext& call) : call_(call) {}

  /// What goes up in window \p w of slot \p id: so many micro-batches as are in flight in the first
  /// one, then one more in each, while there are any.
  void add_up(SlotId id, std::size_t w);

  /// What slot \p id hands to the host of micro-batch \p m, if anything. The last compute so far
  /// completes it.
  void add_down(SlotId id, std::size_t m);

  /// What \p pass, the last compute so far, makes for other devices of micro-batch \p m of slot \p
  /// id. Unlike a download it waits for no later pass.
  void add_sent(SlotId id, std::size_t m, Pass const& pass);

 private:
  [[nodiscard]] std::size_t in_flight() const noexcept { return call_.input.buffering.activations; }

  /// The boundary and the side inputs that slot \p id reads.
  void add_input(SlotId id, std::size_t m);

  /// The gradient of the boundary that slot \p id has made anew.
  void add_gradient(SlotId id, std::size_t m);

  /// It waits for the compute that makes room for it: a window begins with that, so that
  /// activations go up as early as planned, and no earlier.
  [[nodiscard]] Action make_up(SlotId id, ActionKind kind, std::size_t m) const;

  ActionId add_to_entry(Action action);

  CallContext& call_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/activation_copies.ipp>
#endif
