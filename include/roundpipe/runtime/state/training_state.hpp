// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief All that a training continues from, as a value: views of tensors, and numbers.

#include <roundpipe/config.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/block_shards.hpp>
#include <roundpipe/optim/loss_scale.hpp>
#include <roundpipe/runtime/state/block_readers.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace roundpipe {

/// Where a training stands: its state but for the tensors. Trivially copyable.
struct TrainingPosition {
  std::uint64_t step = 0;           ///< Finished steps.
  std::uint64_t skipped_steps = 0;  ///< Those among them whose gradients overflowed.
  /// The step whose weights the next call reads: \c step, or with staleness 1 the one before.
  std::uint64_t visible_step = 0;
  std::uint64_t calls = 0;         ///< Training calls; with the seed, the random keys.
  std::uint64_t seed = 0;          ///< Of all random numbers.
  std::uint64_t first_device = 0;  ///< The schedule's position: where the next call begins.
  std::optional<LossScaleState> loss_scale{};  ///< None without a loss scale.
  /// Whether the steps after \c loss_scale->recorded_steps overflowed, up to \c step.
  std::array<bool, 2> overflowed{};

  /// Whether staleness 1 has a step in flight: the next call's weights are older than the newest.
  [[nodiscard]] bool is_stale() const noexcept { return visible_step < step; }
};
static_assert(std::is_trivially_copyable_v<TrainingPosition>);

/// Calls `f(step, overflowed)` for each step whose verdict \c loss_scale does not follow from yet;
/// \p position may be const.
template <class Position, class F>
void for_each_late_verdict(Position& position, F&& f) {
  if (position.loss_scale) {
    auto const recorded = position.loss_scale->recorded_steps;
    for (auto step = recorded + 1; step <= position.step; ++step) {
      f(step, position.overflowed[step - recorded - 1]);
    }
  }
}

/// A parameter in a \ref TrainingState. It views memory that it does not own.
struct ParameterState {
  std::string name;     ///< As \ref ParameterBlocks::name_of says: of the first layer that has it.
  bool frozen = false;  ///< Never updated: \c weights alone count.
  /// As the last step left them: the optimizer's own in f32; where it has none (see \ref
  /// StateType), and of frozen parameters, in the declared type.
  HostTensor weights;
  std::vector<HostTensor> optimizer;  ///< The optimizer's state arrays.
  /// As the next call reads them, in the declared type. Where \c TrainingPosition::is_stale() is
  /// false they are \c weights, rounded, and \c restore does not read them.
  HostTensor visible;
  /// By rank, where ranks share the parameter: the elements that the tensors above have of their
  /// shapes. Empty: all of them, on every rank.
  std::vector<ElementRange> parts{};
  BlockId block{};  ///< Of those that a \ref BlockHold of the state's \c readers holds.
};

/// All that makes the rest of a training what it is, but for the batches and the options. Where
/// ranks share parameters, that of one rank has its parts of them; a snapshot puts all together.
struct TrainingState {
  TrainingPosition position;
  std::vector<ParameterState> parameters;  ///< Shared ones once.
  /// Where they are there, whoever takes a \ref BlockHold of them before the trainer's next call
  /// may read each parameter until it releases the block, even if the trainer is destroyed
  /// meanwhile: that waits. Without them the views end with the next call.
  std::shared_ptr<BlockReaders> readers{};
};

/// A parameter whose weights may be overwritten.
struct ParameterArrays {
  std::string name;  ///< As in \ref ParameterState.
  Shape shape;
  std::vector<HostArray> copies;  ///< Of the same elements, perhaps of several types.
};

/// What the optimizer state \p s of the parameter \p name is called: "NAME@state0".
[[nodiscard]] inline std::string state_tensor_name(std::string const& name, std::size_t s) {
  return name + "@state" + std::to_string(s);
}

/// Calls `f(name, tensor)` for every tensor of \p state, a \ref TrainingState, that \c restore
/// reads. Weights have their parameter's name, optimizer states that of \ref state_tensor_name;
/// "NAME@visible" is what the next call reads.
template <class State, class F>
  requires std::same_as<std::remove_const_t<State>, TrainingState>
void for_each_tensor(State& state, F&& f) {
  for (auto& parameter : state.parameters) {
    f(parameter.name, parameter.weights);
    for (std::size_t s = 0; s < parameter.optimizer.size(); ++s) {
      f(state_tensor_name(parameter.name, s), parameter.optimizer[s]);
    }
    if (!parameter.frozen && state.position.is_stale()) {
      f(parameter.name + "@visible", parameter.visible);
    }
  }
}

/// \p position as a training of \p seed and \p staleness continues from it: a synchronous one reads
/// the newest weights.
/// \throws Error (invalid_argument) for another seed, or numbers that contradict each other.
[[nodiscard]] TrainingPosition continued_position(TrainingPosition position,
                                                  std::uint64_t seed,
                                                  int staleness);

/// The parameters of \p state in the order of \p own, the trainer's. \p position is the continued
/// one.
/// \throws Error (invalid_argument) that names the first parameter that is missing, not the
///         trainer's or there twice, of which the state has a part alone, or of another shape,
///         type, size, number of optimizer states, or frozen in one of the two only.
[[nodiscard]] std::vector<ParameterState const*> match_parameters(
    std::vector<ParameterState> const& own,
    TrainingState const& state,
    TrainingPosition const& position);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/training_state.ipp>
#endif
