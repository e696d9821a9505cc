// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>

#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE CostModel CostModel::estimate(ModelDescription const& model,
                                               DeviceProperties const& device) {
  std::vector<LayerCost> costs;
  for (auto const& layer : model.layers) {
    Bytes bytes = layer.input.bytes() + layer.boundary.bytes() + layer.side_inputs.bytes() +
                  layer.footprint.saved_bytes;
    double parameters = 0;
    for (auto const& spec : layer.parameters) {
      bytes += spec.tensor.bytes();
      parameters += static_cast<double>(spec.tensor.shape.size());
    }
    auto work = layer.work;
    if (work.forward_flops == 0 && work.backward_flops == 0) {
      work.forward_flops = 2 * parameters * static_cast<double>(model.capacity.positions());
      work.backward_flops = 2 * work.forward_flops;
    }
    auto const moving = static_cast<double>(bytes) / device.memory_bytes_per_second;
    costs.push_back({work.forward_flops / device.flops_per_second + moving,
                     work.backward_flops / device.flops_per_second + 2 * moving});
    for (auto const flops : work.replay_flops) {  // it moves as much for its FLOPs
      require(work.forward_flops > 0,
              Errc::invalid_argument,
              "a layer counts the FLOPs of recomputations, but none of its forward");
      costs.back().replay_s.push_back(costs.back().forward_s * flops / work.forward_flops);
    }
  }
  return CostModel(std::move(costs));
}

ROUNDPIPE_INLINE double CostModel::micro_batch_s() const noexcept {
  double seconds = 0;
  for (auto const& layer : layers_) {
    seconds += layer.forward_s + layer.backward_s;
  }
  return seconds;
}

ROUNDPIPE_INLINE CostModel with_round_costs(CostModel const& costs,
                                            ModelDescription const& model,
                                            DeviceProperties const& device) {
  auto layers = costs.layers();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Bytes moved = 0;
    for (auto const& parameter : model.layers[i].parameters) {
      auto const type = parameter.tensor.dtype;
      auto const sum = size_of(accumulation_type(type));
      auto const each = type == accumulation_type(type) ? sum : 2 * sum + size_of(type);
      moved += parameter.frozen ? 0 : each * parameter.tensor.shape.size();
    }
    layers[i].round_s = static_cast<double>(moved) / device.memory_bytes_per_second;
  }
  CostModel result(std::move(layers));
  result.set_network(costs.network());
  return result;
}

}  // namespace roundpipe
