// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Orders uploads, gradient writes, the optimizer and its copies, block by block.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// How far the optimizer may lag behind.
struct LayerEventProtocolOptions {
  /// 1: iteration T+1 computes with the weights of step T-1 while step T runs. 0: synchronous.
  int staleness = 1;
  /// Whether the optimizer works on a copy of the gradients, so that the next iteration's may be
  /// written while it runs; costs one more gradient in host memory. With staleness 0 there is
  /// nothing to gain, and no copy.
  bool gradient_copy = true;
};

/// \brief Five rules for each block b and iteration T, each an edge to the *same* block only, so
/// that no layer ever waits for another's optimizer (RoundPipe, arXiv:2604.27085):
///
/// 1. P copy(b, T) after the uploads of b that must still see the older weights.
/// 2. Uploads of b that must see them after P copy(b, T).
/// 3. The reader of gradients after the last gradient write of b in T. The reader is G copy(b, T),
///    or without G copies the optimizer step itself.
/// 4. Gradient writes of b in T+1 after that reader.
/// 5. G copy(b, T+1) and P copy(b, T) after optimizer step(b, T), and optimizer step(b, T+1) after
///    both; reason: the step reads the one's destination and writes the other's source.
///
/// With staleness 1, P copy(b, T) belongs to step T+1: rule 1 then spares the uploads of iteration
/// T+1, which do not wait for step T. With staleness 0 it belongs to step T, and rule 2 makes every
/// upload of iteration T+1 wait for it. The edges are the same.
class LayerEventProtocol {
 public:
  /// \throws Error (invalid_argument) for a staleness other than 0 and 1.
  constexpr explicit LayerEventProtocol(LayerEventProtocolOptions options = {})
      : options_(options) {
    require(options.staleness == 0 || options.staleness == 1,
            Errc::invalid_argument,
            "an event protocol's staleness is 0 or 1");
  }
  constexpr explicit LayerEventProtocol(int staleness)
      : LayerEventProtocol(LayerEventProtocolOptions{.staleness = staleness}) {}

  [[nodiscard]] constexpr int staleness() const noexcept { return options_.staleness; }
  [[nodiscard]] constexpr bool copies_gradients() const noexcept {
    return options_.staleness == 1 && options_.gradient_copy;
  }

  /// What \p action waits for; see the rules above.
  /// \throws Error (invalid_argument) for a block that the model has not, and for a G copy when
  /// there are none.
  [[nodiscard]] std::vector<BlockEvent> before(BlockEvent action, std::size_t blocks) const {
    require(action.block.valid() && action.block.index() < blocks,
            Errc::invalid_argument,
            "an event protocol was asked about a block that the model has not");
    require(action.kind != BlockEventKind::gradient_copy || copies_gradients(),
            Errc::invalid_argument,
            "an event protocol without gradient copies was asked what one waits for");
    using enum BlockEventKind;
    auto const on = [&](BlockEventKind kind) { return BlockEvent{action.block, kind}; };
    switch (action.kind) {
      case upload:
        return {on(parameter_copy)};  // rule 2
      case gradient_write:
        return {on(copies_gradients() ? gradient_copy : optimizer_step)};  // rule 4
      case gradient_copy:
        return {on(gradient_write), on(optimizer_step)};  // rules 3 and 5
      case optimizer_step:
        return {on(copies_gradients() ? gradient_copy : gradient_write),  // rules 5 or 3
                on(parameter_copy)};                                      // rule 5
      case parameter_copy:
        return {on(upload), on(optimizer_step)};  // rules 1 and 5
    }
    return {};
  }

 private:
  LayerEventProtocolOptions options_;
};

static_assert(EventProtocol<LayerEventProtocol>);

}  // namespace roundpipe
