// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Orders uploads, gradient writes, the optimizer and its copies, block by block.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace roundpipe {

/// How far the optimizer may lag behind, and what is held twice for it.
struct EventProtocolOptions {
  /// 1: iteration T+1 computes with the weights of step T-1 while step T runs. 0: synchronous.
  int staleness = 1;
  /// 2: the optimizer writes one master copy while uploads read the other, in its only pass over
  /// memory. 1: P copies, a pass of their own. With staleness 0 one is enough, and there is one.
  std::size_t master_copies = 2;
  /// 2: the next iteration's gradients may be written while the optimizer still reads; worth its
  /// memory where the optimizer takes longer than a forward. With staleness 0 there is one.
  std::size_t gradient_buffers = 1;
};

namespace detail {

/// \p options without what staleness 0 has no use for.
/// \throws Error (invalid_argument) for numbers that make no protocol.
[[nodiscard]] constexpr EventProtocolOptions checked(EventProtocolOptions options) {
  require(options.staleness == 0 || options.staleness == 1,
          Errc::invalid_argument,
          "an event protocol's staleness is 0 or 1");
  require(options.master_copies == 1 || options.master_copies == 2,
          Errc::invalid_argument,
          "an event protocol has one master copy or two");
  require(options.gradient_buffers == 1 || options.gradient_buffers == 2,
          Errc::invalid_argument,
          "an event protocol has one gradient buffer or two");
  if (options.staleness == 0) {
    options.master_copies = 1;
    options.gradient_buffers = 1;
  }
  return options;
}

}  // namespace detail

/// \brief Five rules for each block b and iteration T, each an edge to the *same* block only, so
/// that no layer ever has an edge to another's optimizer (RoundPipe, arXiv:2604.27085):
///
/// 1. P copy(b, T) after the uploads of b that must still see the weights that it overwrites.
/// 2. Uploads of b that must see them after P copy(b, T).
/// 3. The reader of gradients, the optimizer step, after the last gradient write of b in T.
/// 4. Gradient writes of b into the same buffer after that reader: those of T+1, or with two
///    buffers of T+2.
/// 5. P copy(b, T) after optimizer step(b, T), whose result it copies, and before optimizer
///    step(b, T+1), which overwrites it.
///
/// With staleness 1 and one master copy, P copy(b, T) is issued with step T+1: rule 1 then spares
/// the uploads of iteration T+1, which do not wait for step T. With two master copies, and in
/// synchronous mode, the optimizer step writes the master copy itself: rule 5 is its own order, and
/// rules 1 and 2 bind the step. Two copies make the step a pointer swap: what it overwrites was
/// last read in its own iteration, so that it waits for nobody, and nobody for it before T+2.
class LayerEventProtocol {
 public:
  /// \throws Error (invalid_argument) for options out of their domain.
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
  /// \throws Error (invalid_argument) for a block that the model has not.
  [[nodiscard]] std::vector<BlockEvent> before(BlockEvent action, std::size_t blocks) const;

 private:
  EventProtocolOptions options_;
};

static_assert(EventProtocol<LayerEventProtocol>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/policies/impl/layer_event_protocol.ipp>
#endif
