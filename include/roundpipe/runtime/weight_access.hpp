// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads and replaces single parameters by name, reads their gradients, and captures and
/// restores all of them.

#include <roundpipe/config.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>
#include <roundpipe/runtime/state/training_state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace roundpipe {

/// Gradients that no step has used yet.
struct PendingGradients {
  std::uint64_t iteration = 1;
  double loss_scale = 1;  ///< That made them.
};

/// The weights that the last finished step left. Call it while no step is under way.
///
/// Where ranks share blocks, each has a part of what is most exact: then \ref for_each, \ref read
/// and \ref read_gradient are operations of all ranks, and throw as the group does.
class WeightAccess {
 public:
  /// \p memory and \p progress must outlive this. \p group: of the ranks that share blocks.
  WeightAccess(ParameterMemory const& memory,
               StepProgress const& progress,
               AnyProcessGroup group = {})
      : memory_(memory), progress_(progress), group_(std::move(group)) {}

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

  /// Calls \p f with the `ParameterArrays` of parameters, shared ones once: \p f overwrites all
  /// copies of a parameter with equal values, rounded to each type, or leaves all as they are. \p f
  /// gets all parameters at once, but for those of whose optimizer copy this rank has a part: for
  /// each of these it is called once more, with a whole copy that is lent. When \p f throws, some
  /// parameters are new and others are not.
  template <class F>
  void overwrite(F&& f) const {
    memory_.readers()->wait_for_all();
    f(arrays());
    memory_.blocks().for_each([&](BlockTensor parameter) {
      if (has_part(parameter.block)) {
        lend_whole(parameter, f);
      }
    });
  }

  /// Copies a parameter's part of \p gradients, unscaled, to \p values, of its size.
  /// \throws Error (invalid_argument) for a frozen parameter.
  void read_gradient(BlockTensor parameter,
                     PendingGradients gradients,
                     HostSpan<float> values) const;

  /// Views of all parameters, or of this rank's parts; the next call reads the weights of
  /// \p visible_step.
  [[nodiscard]] std::vector<ParameterState> state(std::uint64_t visible_step) const;

  /// Copies \p parameters, as \ref match_parameters returns them, to all copies, as of \p position.
  /// They may view what \ref state returned.
  void restore(std::vector<ParameterState const*> const& parameters,
               TrainingPosition const& position) const;

 private:
  template <class F>
  void with_weights(BlockTensor parameter, F&& f) const {
    auto const [block, t] = parameter;
    auto const version = progress_.finished_steps();
    if (!memory_.has_optimizer_copy(block)) {
      with_floats(memory_.master(block, t, version), f);
    } else if (!is_sharded(block)) {
      memory_.with_weights(block, t, version, f);
    } else {
      auto whole = gather(parameter, memory_.weights(block, t, version));
      with_floats(HostArray{whole.data(), size_of_all(parameter), DType::f32}, f);
    }
  }

  /// Calls \p f with the arrays of \p parameter, see \ref overwrite, and keeps the own part.
  template <class F>
  void lend_whole(BlockTensor parameter, F&& f) const {
    auto const [block, t] = parameter;
    auto const own = memory_.own(block, t);
    auto const weights = memory_.weights(block, t, 0).bytes();
    std::vector<float> whole(size_of_all(parameter));
    auto const part = std::as_writable_bytes(std::span(whole).subspan(own.begin, own.size()));
    std::copy(weights.begin(), weights.end(), part.begin());
    auto copies = memory_.masters(block, t);
    copies.insert(copies.begin(),
                  {reinterpret_cast<std::byte*>(whole.data()), whole.size(), DType::f32});
    f(std::vector{arrays_of(parameter, std::move(copies))});
    std::copy(part.begin(), part.end(), weights.begin());
  }

  /// The memory of all copies of every parameter that is all here, in layer order.
  [[nodiscard]] std::vector<ParameterArrays> arrays() const;
  [[nodiscard]] ParameterArrays arrays_of(BlockTensor parameter,
                                          std::vector<HostArray> copies) const;

  /// Whether this rank has a part of the optimizer copy alone.
  [[nodiscard]] bool has_part(BlockId block) const {
    return is_sharded(block) && memory_.has_optimizer_copy(block);
  }
  [[nodiscard]] bool is_sharded(BlockId block) const {
    return memory_.blocks().blocks[block.index()].is_sharded();
  }
  [[nodiscard]] std::size_t size_of_all(BlockTensor parameter) const {
    return memory_.blocks().tensor(parameter).shape.size();
  }
  /// The bytes of all elements of \p parameter in an array of which \p own is this rank's part.
  [[nodiscard]] std::vector<std::byte> gather(BlockTensor parameter, HostArray const& own) const;

  ParameterMemory const& memory_;
  StepProgress const& progress_;
  mutable AnyProcessGroup group_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/weight_access.ipp>
#endif
