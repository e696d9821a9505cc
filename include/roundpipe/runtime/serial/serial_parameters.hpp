// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A model's parameters, gradients and optimizer states as the serial trainer keeps them.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/optim/step_check.hpp>
#include <roundpipe/optim/update_pass.hpp>
#include <roundpipe/runtime/state/rounding_key.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/system/aligned_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace roundpipe {

/// The master copy, the optimizer copy and its states as floats (whatever type they are kept in),
/// and two levels of gradient sums: over the micro-batches of a round, by use; and over rounds and
/// calls, by block.
class SerialParameters {
 public:
  /// Master and optimizer copy begin with the first values that \p seed gives.
  SerialParameters(ParameterBlocks blocks,
                   std::size_t state_arrays,
                   StateType state_type,
                   std::uint64_t seed);

  [[nodiscard]] ParameterBlocks const& blocks() const noexcept { return blocks_; }

  /// Views of the master copy of a layer's parameters.
  [[nodiscard]] std::vector<DeviceTensor> parameters(std::size_t layer) const;
  /// Views of the round's gradient sums of a layer's parameters.
  [[nodiscard]] std::vector<DeviceTensor> gradients(std::size_t layer) const;
  /// The parameter \p name, whose elements are \p size.
  /// \throws Error (invalid_argument) when there is no such parameter, or for another size.
  [[nodiscard]] BlockTensor find(std::string_view name, std::size_t size) const;
  /// Overwrites the optimizer copy of a parameter.
  void write_weights(BlockTensor parameter, HostSpan<float const> values);
  /// Calls \p f with the \ref ParameterArrays of every parameter: \p f may overwrite the optimizer
  /// copy, in f32.
  template <class F>
  void overwrite(F&& f) {
    f(arrays());
    blocks_.for_each([&](BlockTensor parameter) { round_weights(parameter); });
  }
  [[nodiscard]] HostSpan<float const> weights(BlockTensor parameter) const {
    return at(parameter).weights;
  }
  /// \throws Error (invalid_argument) for a frozen parameter.
  [[nodiscard]] HostSpan<float const> gradient(BlockTensor parameter) const;

  /// Views of all parameters: f32, but for the master copy.
  [[nodiscard]] std::vector<ParameterState> state() const;
  /// Copies \p parameters, as \ref match_parameters returns them, to both copies, as of \p
  /// position.
  void restore(std::vector<ParameterState const*> const& parameters,
               TrainingPosition const& position);

  /// P copy: the master copy becomes the optimizer copy, rounded.
  void copy_parameters();

  /// Calls \p f while the master copy is the optimizer copy, rounded. Then it is what it was.
  template <class F>
  void with_newest(F&& f) {
    std::vector<std::vector<std::byte>> kept;
    for (auto const& master : masters_) {
      kept.emplace_back(master.bytes().begin(), master.bytes().end());
    }
    copy_parameters();
    f();
    for (std::size_t b = 0; b < masters_.size(); ++b) {
      std::copy(kept[b].begin(), kept[b].end(), masters_[b].bytes().begin());
    }
  }

  /// Sets the round's sums to zero.
  void begin_round();

  /// Rounds each use's sum of the round once, to the parameter's type, and adds it to its block's
  /// sum: uses in layer order. What is kept in bf16 is rounded stochastically. \p overwrites: these
  /// are the first since the last step; \p step is the next.
  void end_round(bool overwrites, std::uint64_t step);

  /// The sum of the squares of all gradients: by block, tensors in order, then over blocks.
  [[nodiscard]] double gradient_sum_of_squares() const;

  /// \throws Error where \p optimizer refuses step \p step of a parameter, see \ref check_step.
  template <Optimizer O>
  void check_step(O const& optimizer, std::uint64_t step) const {
    blocks_.for_each([&](BlockTensor parameter) {
      if (!blocks_.blocks[parameter.block.index()].frozen) {
        auto const name = blocks_.name_of(parameter);
        roundpipe::check_step(optimizer, blocks_.info_of(parameter, name), step);
      }
    });
  }

  /// One optimizer step over the optimizer copy. What is kept in bf16 is rounded stochastically.
  template <Optimizer O>
  void update(O const& optimizer, std::uint64_t step, float gradient_factor) {
    for (std::size_t b = 0; b < tensors_.size(); ++b) {
      for (std::size_t t = 0; !blocks_.blocks[b].frozen && t < tensors_[b].size(); ++t) {
        auto& tensor = tensors_[b][t];
        BlockTensor const parameter{BlockId(b), t};
        auto const name = blocks_.name_of(parameter);
        UpdateContext const context{step, gradient_factor, blocks_.info_of(parameter, name)};
        if (freezes(optimizer, context.parameter, step)) {
          continue;
        }
        std::vector<HostSpan<float>> const states(tensor.states.begin(), tensor.states.end());
        optimizer.update(context, HostSpan<float>(tensor.weights), tensor.gradient, states);
        if (keeps_bfloat16(b, t)) {
          auto const key = rounding_key(seed_, step, BlockId(b), t);
          round_stochastically(tensor.weights, key, 0);
          for (std::size_t s = 0; s < states.size(); ++s) {
            round_stochastically(states[s], key, s + 1);
          }
        }
      }
    }
  }

 private:
  struct Tensor {
    std::vector<float> weights;
    std::vector<float> gradient;
    std::vector<std::vector<float>> states;
  };

  [[nodiscard]] Tensor const& at(BlockTensor parameter) const {
    return tensors_[parameter.block.index()][parameter.tensor];
  }
  [[nodiscard]] Tensor& at(BlockTensor parameter) {
    return tensors_[parameter.block.index()][parameter.tensor];
  }

  /// A parameter's part of the master copy.
  [[nodiscard]] HostBytes master(BlockTensor parameter) const;

  /// Whether states and sums of a tensor are kept in bf16.
  [[nodiscard]] bool keeps_bfloat16(std::size_t block, std::size_t t) const {
    return state_type_ == StateType::declared &&
           blocks_.blocks[block].master[t].dtype == DType::bf16;
  }

  /// Rounds the optimizer copy of a parameter where there is no other than the master copy.
  void round_weights(BlockTensor parameter);
  [[nodiscard]] std::vector<ParameterArrays> arrays();

  /// Rounds \p values to nearest numbers of \p type.
  static void round(DType type, std::vector<float>& values);

  [[nodiscard]] static DeviceTensor view(TensorTable const& table,
                                         std::size_t tensor,
                                         AlignedMemory const& memory);

  ParameterBlocks blocks_;
  StateType state_type_;
  std::uint64_t seed_;
  std::vector<AlignedMemory> masters_;        // by block
  std::vector<std::vector<Tensor>> tensors_;  // by block, by tensor
  std::vector<AlignedMemory> round_sums_;     // by use
  std::vector<std::uint32_t> additions_;      // by block: to the sum of the iteration
  std::vector<std::byte> rounded_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/serial/impl/serial_parameters.ipp>
#endif
