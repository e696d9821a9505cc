// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Orders uploads, gradient writes, optimizer steps and P copies block by block.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace roundpipe {

/// How far the optimizer may lag behind, and which buffers are doubled for it.
struct EventProtocolOptions {
  /// 1: iteration T+1 computes with the weights of step T-1 while step T runs. 0: synchronous.
  int staleness = 1;
  /// 2: the optimizer writes one master copy while uploads read the other, in its only pass over
  /// memory. 1: P copies, which are a separate pass. With staleness 0 there is always one.
  std::size_t master_copies = 2;
  /// 2: the next iteration may write its gradients while the optimizer still reads; this is worth
  /// its memory where the optimizer takes longer than a forward. With staleness 0 there is always
  /// one.
  std::size_t gradient_buffers = 1;
};

namespace detail {

/// \p options without the doubled buffers that staleness 0 cannot use.
/// \throws Error (invalid_argument) for invalid options.
[[nodiscard]] constexpr EventProtocolOptions checked(EventProtocolOptions options) {
  require(options.staleness == 0 || options.staleness == 1,
          Errc::invalid_argument,
          "an event protocol's staleness must be 0 or 1");
  require(options.master_copies == 1 || options.master_copies == 2,
          Errc::invalid_argument,
          "an event protocol needs one or two master copies");
  require(options.gradient_buffers == 1 || options.gradient_buffers == 2,
          Errc::invalid_argument,
          "an event protocol needs one or two gradient buffers");
  if (options.staleness == 0) {
    options.master_copies = 1;
    options.gradient_buffers = 1;
  }
  return options;
}

}  // namespace detail

/// \brief Five rules for each block b and iteration T. Each rule is an edge to the *same* block
/// only, so that no layer waits for the optimizer of another layer (RoundPipe, arXiv:2604.27085):
/// 1. P copy(b, T) after the uploads of b that must still see the weights that the P copy
///    overwrites.
/// 2. Uploads of b that must see the new weights after P copy(b, T).
/// 3. The reader of gradients, the optimizer step, after the last gradient write of b in T.
/// 4. Gradient writes of b into the same buffer after that reader: the writes of T+1, or with two
///    buffers those of T+2.
/// 5. P copy(b, T) after optimizer step(b, T), whose result it copies, and before optimizer step(b,
///    T+1), which overwrites the result.
/// With staleness 1 and one master copy, P copy(b, T) is issued with step T+1: rule 1 then exempts
/// the uploads of iteration T+1, which do not wait for step T. With two master copies, and in
/// synchronous mode, the optimizer step writes the master copy itself: the step's own order
/// satisfies rule 5, and rules 1 and 2 bind the step. Two copies make the step a pointer swap: only
/// the step's own iteration has read the copy that it overwrites, so the step waits for no other
/// iteration, and iteration T+2 is the first that waits for the step.
class LayerEventProtocol {
 public:
  /// \throws Error (invalid_argument) for invalid options.
  constexpr explicit LayerEventProtocol(EventProtocolOptions options = {})
      : options_(detail::checked(options)) {}
  constexpr explicit LayerEventProtocol(int staleness)
      : LayerEventProtocol(EventProtocolOptions{.staleness = staleness}) {}

  [[nodiscard]] constexpr int staleness() const noexcept { return options_.staleness; }
  [[nodiscard]] constexpr std::size_t master_copies() const noexcept {
    return options_.master_copies;
  }
  [[nodiscard]] constexpr std::size_t gradient_buffers() const noexcept {
    return options_.gradient_buffers;
  }

  /// What \p action waits for; see the rules above.
  /// \throws Error (invalid_argument) for an unknown block.
  [[nodiscard]] std::vector<BlockEvent> before(BlockEvent action, std::size_t blocks) const;

 private:
  EventProtocolOptions options_;
};

static_assert(EventProtocol<LayerEventProtocol>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/policies/impl/layer_event_protocol.ipp>
#endif
