// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Times and bytes of every layer of a model, from its shape alone.
/// The entries are the transformer's layers in execution order, then the language-model head: \c
/// shape.layers + 1 entries. The embedding is left out: it looks up rows, takes almost no time, and
/// belongs to the first stage. When the layers themselves exist, use CostModel::estimate, which
/// asks the layers.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/estimate/model_shape.hpp>
#include <roundpipe/model/layer_bytes.hpp>

#include <cstdint>
#include <vector>

namespace roundpipe {

/// The number of positions whose logits the head computes at a time, which keeps its workspace
/// small.
inline constexpr std::int64_t head_chunk_positions = 1024;

namespace detail {

/// 2 b s h.
[[nodiscard]] double boundary(ModelShape const& shape, BatchShape micro_batch);

}  // namespace detail

/// The time of each layer for \p micro_batch: FLOPs over the peak or bytes over the bandwidth of
/// the device's memory, whichever is longer (the roofline; real layers take longer still).
/// A forward reads the parameters of the experts that its positions can reach and writes its
/// activations and its boundary. A backward reads all of these and writes their gradients: twice as
/// much. The bytes of the head's logits are ignored.
/// \throws Error (invalid_argument) for an invalid shape or extents below 1, or when \p device does
/// not know its peak or its memory's bandwidth.
[[nodiscard]] std::vector<LayerCost> layer_costs(ModelShape const& shape,
                                                 DeviceProperties const& device,
                                                 BatchShape micro_batch);

/// The bytes of each layer for \p micro_batch; parameters and gradients in bf16.
/// The saved bytes of a layer and its input (a boundary) together are its \ref activation_bytes.
/// Its workspace serves the halves of its backward in turn: the gradients of gate, up and
/// activation of k experts, or of queries, attended values, keys, values and norm; plus the
/// gradient between the halves. The workspace of the head holds a chunk of logits in fp32, their
/// gradient, and the normalized input with its gradient; the head saves nothing.
/// \throws Error (invalid_argument) for an invalid shape or extents below 1.
[[nodiscard]] std::vector<LayerBytes> layer_bytes(ModelShape const& shape, BatchShape micro_batch);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/estimate/impl/shape_costs.ipp>
#endif
