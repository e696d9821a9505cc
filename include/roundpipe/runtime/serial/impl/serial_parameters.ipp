// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/optim/clipping.hpp>
#include <roundpipe/optim/stochastic_rounding.hpp>
#include <roundpipe/optim/update_pass.hpp>
#include <roundpipe/runtime/serial/serial_parameters.hpp>
#include <roundpipe/runtime/state/initialize.hpp>
#include <roundpipe/runtime/state/rounding_key.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/system/aligned_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE SerialParameters::SerialParameters(ParameterBlocks blocks,
                                                    std::size_t state_arrays,
                                                    StateType state_type,
                                                    std::uint64_t seed)
    : blocks_(std::move(blocks)),
      state_type_(state_type),
      seed_(seed),
      additions_(blocks_.blocks.size()) {
  require_state_type(blocks_, state_type);
  for (std::size_t b = 0; b < blocks_.blocks.size(); ++b) {
    auto const& block = blocks_.blocks[b];
    masters_.emplace_back(block.master.bytes());
    auto& tensors = tensors_.emplace_back();
    for (std::size_t t = 0; t < block.specs.size(); ++t) {
      auto const size = block.specs[t].tensor.shape.size();
      auto const trained = block.frozen ? 0 : size;
      auto& tensor = tensors.emplace_back(
          Tensor{std::vector<float>(size),
                 std::vector<float>(trained),
                 std::vector<std::vector<float>>(state_arrays, std::vector<float>(trained))});
      initialize(block.specs[t], seed, b, t, tensor.weights);
      if (block.frozen || state_type == StateType::declared) {
        round(block.master[t].dtype, tensor.weights);
      }
    }
  }
  for (std::size_t u = 0; u < blocks_.uses.size(); ++u) {
    BlockUseId const use(u);
    round_sums_.emplace_back(blocks_.trains(use) ? blocks_.block_of(use).gradient.bytes() : 0);
  }
  copy_parameters();
}

ROUNDPIPE_INLINE std::vector<DeviceTensor> SerialParameters::parameters(std::size_t layer) const {
  std::vector<DeviceTensor> result;
  for (auto const& place : blocks_.places[layer]) {
    auto const& use = blocks_.use(place.use);
    auto const& table = blocks_.block_of(place.use).master;
    result.push_back(view(table, place.tensor, masters_[use.block.index()]));
  }
  return result;
}

ROUNDPIPE_INLINE std::vector<DeviceTensor> SerialParameters::gradients(std::size_t layer) const {
  std::vector<DeviceTensor> result;
  for (auto const& place : blocks_.places[layer]) {
    auto const& table = blocks_.block_of(place.use).gradient;
    result.push_back(blocks_.trains(place.use)
                         ? view(table, place.tensor, round_sums_[place.use.index()])
                         : DeviceTensor{});
  }
  return result;
}

ROUNDPIPE_INLINE BlockTensor SerialParameters::find(std::string_view name, std::size_t size) const {
  auto const parameter = blocks_.find(name);
  require(weights(parameter).size() == size,
          Errc::invalid_argument,
          "a parameter is read or written as another number of values than it has");
  return parameter;
}

ROUNDPIPE_INLINE void SerialParameters::write_weights(BlockTensor parameter,
                                                      HostSpan<float const> values) {
  at(parameter).weights.assign(values.begin(), values.end());
  round_weights(parameter);
}

ROUNDPIPE_INLINE void SerialParameters::round_weights(BlockTensor parameter) {
  auto const& block = blocks_.blocks[parameter.block.index()];
  if (block.frozen || state_type_ == StateType::declared) {
    round(block.master[parameter.tensor].dtype, at(parameter).weights);
  }
}

ROUNDPIPE_INLINE HostSpan<float const> SerialParameters::gradient(BlockTensor parameter) const {
  require(!blocks_.blocks[parameter.block.index()].frozen,
          Errc::invalid_argument,
          "a frozen parameter has no gradient");
  return at(parameter).gradient;
}

ROUNDPIPE_INLINE std::vector<ParameterState> SerialParameters::state() const {
  std::vector<ParameterState> result;
  blocks_.for_each([&](BlockTensor parameter) {
    auto const& block = blocks_.blocks[parameter.block.index()];
    auto const& spec = block.master[parameter.tensor];
    auto const floats = [&](std::vector<float> const& values) {
      return HostTensor{std::as_bytes(std::span(values)), spec.shape, DType::f32};
    };
    auto& state = result.emplace_back();
    state.name = blocks_.name_of(parameter);
    state.frozen = block.frozen;
    state.weights = floats(at(parameter).weights);
    for (std::size_t s = 0; !block.frozen && s < at(parameter).states.size(); ++s) {
      state.optimizer.push_back(floats(at(parameter).states[s]));
    }
    state.visible = {master(parameter), spec.shape, spec.dtype};
  });
  return result;
}

ROUNDPIPE_INLINE void SerialParameters::restore(
    std::vector<ParameterState const*> const& parameters, TrainingPosition const& position) {
  auto const copy = [](HostTensor const& from, HostBytes to) {
    std::copy(from.bytes.begin(), from.bytes.end(), to.begin());
  };
  auto next = parameters.begin();
  blocks_.for_each([&](BlockTensor parameter) {
    auto const& from = **next++;
    auto& tensor = at(parameter);
    copy(from.weights, std::as_writable_bytes(std::span(tensor.weights)));
    for (std::size_t s = 0; s < from.optimizer.size(); ++s) {
      copy(from.optimizer[s], std::as_writable_bytes(std::span(tensor.states[s])));
    }
    if (!from.frozen && position.is_stale()) {
      copy(from.visible, master(parameter));
    } else {
      auto const& table = blocks_.blocks[parameter.block.index()].master;
      narrow(tensor.weights, table[parameter.tensor].dtype, master(parameter));
    }
  });
}

ROUNDPIPE_INLINE std::vector<ParameterArrays> SerialParameters::arrays() {
  std::vector<ParameterArrays> result;
  blocks_.for_each([&](BlockTensor parameter) {
    auto& weights = at(parameter).weights;
    result.push_back(
        {blocks_.name_of(parameter),
         blocks_.tensor(parameter).shape,
         {{reinterpret_cast<std::byte*>(weights.data()), weights.size(), DType::f32}}});
  });
  return result;
}

ROUNDPIPE_INLINE void SerialParameters::copy_parameters() {
  for (std::size_t b = 0; b < blocks_.blocks.size(); ++b) {
    auto const& table = blocks_.blocks[b].master;
    for (std::size_t t = 0; t < table.size(); ++t) {
      narrow(tensors_[b][t].weights, table[t].dtype, master({BlockId(b), t}));
    }
  }
}

ROUNDPIPE_INLINE void SerialParameters::begin_round() {
  for (auto const& sum : round_sums_) {
    sum.clear();
  }
}

ROUNDPIPE_INLINE void SerialParameters::end_round(bool overwrites, std::uint64_t step) {
  std::vector<bool> added(blocks_.blocks.size(), !overwrites);
  for (std::size_t u = 0; u < blocks_.uses.size(); ++u) {
    auto const b = blocks_.uses[u].block.index();
    auto const& block = blocks_.blocks[b];
    additions_[b] = added[b] ? additions_[b] + 1 : 0;
    for (std::size_t t = 0; !block.frozen && t < block.specs.size(); ++t) {
      auto const& sums = view(block.gradient, t, round_sums_[u]).as<float>();
      rounded_.resize(block.master[t].bytes());
      narrow({sums.device_pointer(), sums.size()}, block.master[t].dtype, rounded_);
      auto& gradient = tensors_[b][t].gradient;
      widen(rounded_, block.master[t].dtype, gradient, added[b]);
      if (added[b] && keeps_bfloat16(b, t)) {
        auto const key = sum_rounding_key(seed_, step, BlockId(b), t, additions_[b]);
        round_stochastically(gradient, key, 0);
      }
    }
    added[b] = true;
  }
}

ROUNDPIPE_INLINE double SerialParameters::gradient_sum_of_squares() const {
  double sum = 0;
  for (auto const& tensors : tensors_) {
    double block_sum = 0;
    for (auto const& tensor : tensors) {
      block_sum += sum_of_squares(tensor.gradient);
    }
    sum += block_sum;
  }
  return sum;
}

ROUNDPIPE_INLINE HostBytes SerialParameters::master(BlockTensor parameter) const {
  auto const b = parameter.block.index();
  auto const& table = blocks_.blocks[b].master;
  auto const t = parameter.tensor;
  return masters_[b].bytes().subspan(table.offset(t), table[t].bytes());
}

ROUNDPIPE_INLINE void SerialParameters::round(DType type, std::vector<float>& values) {
  std::vector<std::byte> rounded(values.size() * size_of(type));
  narrow(values, type, rounded);
  widen(rounded, type, values, false);
}

ROUNDPIPE_INLINE DeviceTensor SerialParameters::view(TensorTable const& table,
                                                     std::size_t tensor,
                                                     AlignedMemory const& memory) {
  auto const& spec = table[tensor];
  return {
      memory.device_bytes().subspan(table.offset(tensor), spec.bytes()), spec.shape, spec.dtype};
}

}  // namespace roundpipe
