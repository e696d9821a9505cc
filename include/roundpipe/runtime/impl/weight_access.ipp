// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/hosts/gather_parts.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/runtime/weight_access.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE void WeightAccess::require_whole() const {
  require(!progress_.is_torn(),
          Errc::aborted,
          "an error has stopped an optimizer step half way, so that the weights are of no step; "
          "with StepStart::all_blocks only an optimizer that throws does that");
}

ROUNDPIPE_INLINE void WeightAccess::require_resumable() const {
  require_whole();
  require(!progress_.has_begun(),
          Errc::aborted,
          "an error has stopped the P copies of a step half way, so that the training cannot go "
          "on; with StepStart::all_blocks this cannot happen");
}

ROUNDPIPE_INLINE BlockTensor WeightAccess::find(std::string_view name, std::size_t size) const {
  auto const parameter = memory_.blocks().find(name);
  require(memory_.blocks().tensor(parameter).shape.size() == size,
          Errc::invalid_argument,
          "the values of a parameter are as many as its elements");
  return parameter;
}

ROUNDPIPE_INLINE void WeightAccess::read(BlockTensor parameter, HostSpan<float> values) const {
  require_whole();
  with_weights(parameter, [&](HostSpan<float const> weights) {
    std::copy(weights.begin(), weights.end(), values.begin());
  });
}

ROUNDPIPE_INLINE void WeightAccess::write(BlockTensor parameter,
                                          HostSpan<float const> values) const {
  memory_.write_weights(parameter.block, parameter.tensor, values);
}

ROUNDPIPE_INLINE std::vector<ParameterArrays> WeightAccess::arrays() const {
  std::vector<ParameterArrays> result;
  memory_.blocks().for_each([&](BlockTensor parameter) {
    if (!has_part(parameter.block)) {
      result.push_back(arrays_of(parameter, memory_.copies(parameter.block, parameter.tensor)));
    }
  });
  return result;
}

ROUNDPIPE_INLINE ParameterArrays WeightAccess::arrays_of(BlockTensor parameter,
                                                         std::vector<HostArray> copies) const {
  auto const& blocks = memory_.blocks();
  return {blocks.name_of(parameter), blocks.tensor(parameter).shape, std::move(copies)};
}

ROUNDPIPE_INLINE void WeightAccess::read_gradient(BlockTensor parameter,
                                                  PendingGradients gradients,
                                                  HostSpan<float> values) const {
  require(!memory_.blocks().blocks[parameter.block.index()].frozen,
          Errc::invalid_argument,
          "a frozen parameter has no gradient");
  auto const gradient = memory_.gradient(parameter.block, parameter.tensor, gradients.iteration);
  if (is_sharded(parameter.block)) {
    auto const whole = gather(parameter, gradient);
    widen(whole, gradient.dtype, values, false);
  } else {
    widen(gradient.bytes(), gradient.dtype, values, false);
  }
  auto const factor = static_cast<float>(1 / gradients.loss_scale);
  for (auto& value : values) {
    value *= factor;
  }
}

ROUNDPIPE_INLINE std::vector<std::byte> WeightAccess::gather(BlockTensor parameter,
                                                             HostArray const& own) const {
  auto const& block = memory_.blocks().blocks[parameter.block.index()];
  auto const elements = size_of_all(parameter);
  auto const bytes = size_of(own.dtype);
  std::vector<std::byte> whole(elements * bytes);
  std::vector<HostBytes> parts;
  for (auto const& shard : block.shards) {
    auto const range = shard.of_tensor(parameter.tensor, elements);
    parts.push_back(HostBytes(whole).subspan(range.begin * bytes, range.size() * bytes));
  }
  auto const from = own.bytes();
  std::copy(from.begin(), from.end(), parts[block.rank].begin());
  gather_parts(group_, GroupChannel::control, parts);
  return whole;
}

ROUNDPIPE_INLINE std::vector<ParameterState> WeightAccess::state(std::uint64_t visible_step) const {
  auto const& blocks = memory_.blocks();
  std::vector<ParameterState> result;
  blocks.for_each([&](BlockTensor parameter) {
    auto const [block, t] = parameter;
    auto const view = [&](HostArray const& array) {
      return HostTensor{array.bytes(), blocks.tensor(parameter).shape, array.dtype};
    };
    auto& state = result.emplace_back();
    state.name = blocks.name_of(parameter);
    state.frozen = blocks.blocks[block.index()].frozen;
    state.weights = view(memory_.weights(block, t, progress_.finished_steps()));
    for (std::size_t s = 0; !state.frozen && s < memory_.state_arrays(); ++s) {
      state.optimizer.push_back(view(memory_.state(block, t, s)));
    }
    state.visible = view(memory_.own_master(block, t, visible_step));
    for (auto const& shard : blocks.blocks[block.index()].shards) {
      state.parts.push_back(shard.of_tensor(t, size_of_all(parameter)));
    }
    state.block = block;
  });
  return result;
}

ROUNDPIPE_INLINE void WeightAccess::restore(std::vector<ParameterState const*> const& parameters,
                                            TrainingPosition const& position) const {
  memory_.readers()->wait_for_all();
  auto const copy = [](HostTensor const& from, HostArray const& to, std::size_t first) {
    auto const part = from.bytes.subspan(first * size_of(to.dtype), to.bytes().size());
    std::copy(part.begin(), part.end(), to.data);
  };
  auto next = parameters.begin();
  memory_.blocks().for_each([&](BlockTensor parameter) {
    auto const [block, t] = parameter;
    auto const& from = **next++;
    auto const own = memory_.own(block, t).begin;
    auto const newest = memory_.master(block, t, position.step);
    auto const visible = memory_.master(block, t, position.visible_step);
    bool const is_stale = !from.frozen && position.is_stale();
    if (is_stale) {
      copy(from.visible, visible, 0);
    }
    if (!memory_.has_optimizer_copy(block)) {
      copy(from.weights, newest, 0);
    } else {
      copy(from.weights, memory_.weights(block, t, position.step), own);
      if (!(is_stale && newest.data == visible.data)) {
        narrow(from.weights.as<float>(), newest.dtype, newest.bytes());
      }
    }
    for (std::size_t s = 0; s < from.optimizer.size(); ++s) {
      copy(from.optimizer[s], memory_.state(block, t, s), own);
    }
  });
}

}  // namespace roundpipe
