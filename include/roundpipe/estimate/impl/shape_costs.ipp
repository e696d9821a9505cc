// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/estimate/model_shape.hpp>
#include <roundpipe/estimate/roofline.hpp>
#include <roundpipe/estimate/shape_costs.hpp>
#include <roundpipe/model/layer_bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE double boundary(ModelShape const& shape, BatchShape micro_batch) {
  return bf16_bytes * checked_positions(shape, micro_batch) * as_double(shape.hidden);
}

/// A lower bound: the larger of compute time and memory time.
[[nodiscard]] ROUNDPIPE_INLINE LayerCost roofline_cost(FlopCount work,
                                                       double forward_bytes,
                                                       DeviceProperties const& device) {
  auto const peak = known_peak(device);
  auto const bandwidth =
      known_rate(device.memory_bytes_per_second, device, "memory_bytes_per_second");
  return {std::max(work.forward_flops / peak, forward_bytes / bandwidth),
          std::max(work.backward_flops / peak, 2 * forward_bytes / bandwidth)};
}

}  // namespace detail

ROUNDPIPE_INLINE std::vector<LayerCost> layer_costs(ModelShape const& shape,
                                                    DeviceProperties const& device,
                                                    BatchShape micro_batch) {
  auto const boundary = detail::boundary(shape, micro_batch);
  auto const visits =
      detail::checked_positions(shape, micro_batch) * detail::as_double(shape.active_experts);
  auto const reached =
      static_cast<std::int64_t>(std::min(detail::as_double(shape.experts), visits));
  auto const layer = detail::roofline_cost(
      layer_work(shape, micro_batch),
      detail::bf16_bytes * detail::layer_parameters(shape, reached) +
          static_cast<double>(activation_bytes(shape, micro_batch)) + boundary,
      device);
  auto const head = detail::roofline_cost(head_work(shape, micro_batch),
                                          detail::bf16_bytes * head_parameters(shape) + boundary,
                                          device);
  std::vector<LayerCost> costs(static_cast<std::size_t>(shape.layers), layer);
  costs.push_back(head);
  return costs;
}

ROUNDPIPE_INLINE std::vector<LayerBytes> layer_bytes(ModelShape const& shape,
                                                     BatchShape micro_batch) {
  using detail::as_double;
  auto const positions = detail::checked_positions(shape, micro_batch);
  auto const boundary = detail::whole_bytes(detail::boundary(shape, micro_batch));
  auto const h = as_double(shape.hidden);
  auto const mlp = 3 * as_double(shape.active_experts) * as_double(shape.intermediate);
  auto const attention = 3 * h + 2 * as_double(shape.kv_width());

  LayerBytes layer;
  layer.parameter_bytes = layer_parameter_bytes(shape);
  layer.gradient_bytes = layer.parameter_bytes;
  layer.boundary_bytes = boundary;
  layer.saved_bytes = activation_bytes(shape, micro_batch) - boundary;
  layer.workspace_bytes =
      detail::whole_bytes(detail::bf16_bytes * positions * (h + std::max(mlp, attention)));

  auto const chunk = std::min(positions, as_double(head_chunk_positions));
  auto const logits = chunk * as_double(shape.vocabulary) * (sizeof(float) + detail::bf16_bytes);
  LayerBytes head;
  head.parameter_bytes = detail::whole_bytes(detail::bf16_bytes * head_parameters(shape));
  head.gradient_bytes = head.parameter_bytes;
  head.workspace_bytes = detail::whole_bytes(logits + 2 * detail::boundary(shape, micro_batch));

  std::vector<LayerBytes> bytes(static_cast<std::size_t>(shape.layers), layer);
  bytes.push_back(head);
  return bytes;
}

}  // namespace roundpipe
