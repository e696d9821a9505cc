// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Times of layers: estimated from FLOPs and bytes, or taken from a measurement.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/model/model_description.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// The time of every layer for one micro-batch at capacity.
class CostModel {
 public:
  explicit CostModel(std::vector<LayerCost> layers) : layers_(std::move(layers)) {}

  /// Forward time = FLOPs / peak + bytes moved / memory bandwidth; the backward moves and computes
  /// twice as much unless the layer counts its own \ref FlopCount. A layer that does not count is
  /// taken for a matrix product: 2 FLOPs a parameter and position.
  [[nodiscard]] static CostModel estimate(ModelDescription const& model,
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
    }
    return CostModel(std::move(costs));
  }

  /// One entry a layer.
  [[nodiscard]] std::vector<LayerCost> const& layers() const noexcept { return layers_; }

 private:
  std::vector<LayerCost> layers_;
};

}  // namespace roundpipe
