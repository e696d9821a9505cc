// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which parameters are updated as a whole, and where their arrays are widened to fp32.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/optim/optimizer_needs.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

/// The parameters of each block that an optimizer wants as a whole. Those of one block are updated
/// at once, so each has scratch of its own; blocks take turns with the same memory.
class WholeUpdates {
 public:
  struct Parameter {
    std::size_t tensor = 0;  ///< Of its block.
    std::size_t first = 0;   ///< In the scratch.
    std::size_t floats = 0;  ///< Of the scratch.
  };

  /// Of \p blocks that are kept in \p state_type, for an optimizer with these \p needs.
  WholeUpdates(ParameterBlocks const& blocks, StateType state_type, OptimizerNeeds const& needs);

  /// The largest first.
  [[nodiscard]] std::span<Parameter const> of(BlockId block) const {
    return parameters_[block.index()];
  }

  /// Of the scratch.
  [[nodiscard]] Bytes bytes() const noexcept { return align_up(floats_ * sizeof(float)); }

 private:
  std::vector<std::vector<Parameter>> parameters_;  // by block
  std::size_t floats_ = 0;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/whole_updates.ipp>
#endif
