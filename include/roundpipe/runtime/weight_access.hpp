// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads and replaces single parameters by name, reads their gradients, and captures and
/// restores all of them.

#include <roundpipe/config.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>
#include <roundpipe/runtime/state/training_state.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace roundpipe {

/// Gradients that no step has used yet.
struct PendingGradients {
  std::uint64_t iteration = 1;
  double loss_scale = 1;  ///< That made them.
};

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
  /// are fp32 and live until \p f returns. \throws Error like \ref require_whole.
  template <class F>
  void for_each(F&& f) const {
    require_whole();
    auto const& blocks = memory_.blocks();
    blocks.for_each([&](BlockTensor parameter) {
      with_weights(parameter, [&](HostSpan<float const> values) {
        f(blocks.name_of(parameter), blocks.tensor(parameter).shape, values);
      });
    });
  }

  /// The parameter \p name, whose elements are \p size.
  /// \throws Error (invalid_argument) when there is no such parameter, or for another size.
  [[nodiscard]] BlockTensor find(std::string_view name, std::size_t size) const;

  /// Copies a parameter to \p values, of its size. \throws Error like \ref require_whole.
  void read(BlockTensor parameter, HostSpan<float> values) const;

  /// Replaces a parameter in all copies.
  void write(BlockTensor parameter, HostSpan<float const> values) const;

  /// The memory of all copies of every parameter, in layer order, shared ones once. Whoever
  /// overwrites a parameter gives all of its copies equal values, rounded to each type.
  [[nodiscard]] std::vector<ParameterArrays> arrays() const;

  /// Copies a parameter's part of \p gradients, unscaled, to \p values, of its size.
  /// \throws Error (invalid_argument) for a frozen parameter.
  void read_gradient(BlockTensor parameter,
                     PendingGradients gradients,
                     HostSpan<float> values) const;

  /// Views of all parameters; the next call reads the weights of \p visible_step.
  [[nodiscard]] std::vector<ParameterState> state(std::uint64_t visible_step) const;

  /// Copies \p parameters, as \ref match_parameters returns them, to all copies, as of \p position.
  /// They may view what \ref state returned.
  void restore(std::vector<ParameterState const*> const& parameters,
               TrainingPosition const& position) const;

 private:
  template <class F>
  void with_weights(BlockTensor parameter, F&& f) const {
    memory_.with_weights(parameter.block, parameter.tensor, progress_.finished_steps(), f);
  }

  ParameterMemory const& memory_;
  StepProgress const& progress_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/weight_access.ipp>
#endif
