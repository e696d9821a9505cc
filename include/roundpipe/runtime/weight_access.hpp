// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads and replaces single parameters, by layer or all of them.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>

#include <cstddef>

namespace roundpipe {

/// The weights that the last finished step left. Call it while no step is under way.
class WeightAccess {
 public:
  /// All arguments must outlive this.
  WeightAccess(ParameterMemory const& memory, StepProgress const& progress)
      : memory_(memory), progress_(progress) {}

  /// \throws Error (aborted) when an error has stopped a step half way.
  void require_whole() const;
  /// \throws Error (aborted) when it has stopped even the step's first P copies half way.
  void require_resumable() const;

  /// Calls `f(name, shape, values)` for every parameter, in layer order, shared ones once; values
  /// are fp32 and live until \p f returns.
  template <class F>
  void for_each(F&& f) const {
    auto const& blocks = memory_.blocks().blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      for (std::size_t t = 0; t < blocks[b].specs.size(); ++t) {
        auto const& tensor = blocks[b].specs[t].tensor;
        with_weights(BlockId(b), t, [&](HostSpan<float const> values) {
          f(blocks[b].name + "." + tensor.name, tensor.shape, values);
        });
      }
    }
  }

  /// Where parameter \p index of \p layer is, whose elements are \p size.
  /// \throws Error (invalid_argument) when there is no such parameter, or for another size.
  [[nodiscard]] ParameterPlace find(LayerId layer, std::size_t index, std::size_t size) const;

  /// Copies the parameter at \p place to \p values, of its size.
  void read(ParameterPlace place, HostSpan<float> values) const;

  /// Replaces the parameter at \p place in all copies.
  void write(ParameterPlace place, HostSpan<float const> values) const;

 private:
  [[nodiscard]] BlockId block_of(ParameterPlace place) const;
  template <class F>
  void with_weights(BlockId block, std::size_t tensor, F&& f) const {
    memory_.with_weights(block, tensor, progress_.finished_steps(), f);
  }

  ParameterMemory const& memory_;
  StepProgress const& progress_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/weight_access.ipp>
#endif
