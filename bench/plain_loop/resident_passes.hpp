// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief Forward and backward of all layers for one micro-batch, on a device that keeps what all
/// of them save.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace plain_loop {

namespace rp = roundpipe;

/// Memory of one device, taken piece by piece.
template <rp::Backend B>
class DeviceMemory {
 public:
  /// \p backend must outlive this.
  DeviceMemory(B& backend, rp::DeviceId device) : backend_(backend), device_(device) {}

  /// \p bytes that live as long as this.
  [[nodiscard]] rp::DeviceBytes take(rp::Bytes bytes) {
    if (bytes == 0) {
      return {};
    }
    slabs_.push_back(backend_.allocate_device(device_, bytes));
    return slabs_.back().bytes();
  }

 private:
  using Slab = decltype(std::declval<B&>().allocate_device(rp::DeviceId{}, rp::Bytes{}));

  B& backend_;
  rp::DeviceId device_;
  std::vector<Slab> slabs_;
};

/// Tensor \p tensor of \p table, which lies in \p memory.
[[nodiscard]] inline rp::DeviceTensor view(rp::TensorTable const& table,
                                           std::size_t tensor,
                                           rp::DeviceBytes memory) {
  auto const& spec = table[tensor];
  return {memory.subspan(table.offset(tensor), spec.bytes()), spec.shape, spec.dtype};
}

/// What a micro-batch is run with.
struct MicroBatch {
  rp::LayerCall call;
  rp::HostSpan<std::byte const> staged;           ///< Its tensors, as the batch's layout has them.
  std::vector<rp::DeviceBytes> const& weights;    ///< By block.
  std::vector<rp::DeviceBytes> const& gradients;  ///< By block: sums in fp32, which it adds to.
  rp::DeviceSpan<double> loss;
};

/// Enqueues layers, and owns what they leave for each other.
template <class Model, class Stream>
class ResidentPasses {
 public:
  /// Everything passed by reference must outlive this.
  template <rp::Backend B>
  ResidentPasses(Model const& model,
                 rp::ModelDescription const& facts,
                 rp::BatchLayout const& layout,
                 rp::ParameterBlocks const& blocks,
                 DeviceMemory<B>& memory)
      : model_(model), facts_(facts), layout_(layout), blocks_(blocks) {
    rp::Bytes workspace_bytes = 0;
    for (auto const& layer : facts.layers) {
      layers_.push_back(LayerMemory{memory.take(layer.side_inputs.bytes()),
                                    memory.take(layer.boundary.bytes()),
                                    memory.take(rp::gradient_bytes(layer.boundary)),
                                    memory.take(layer.footprint.saved_bytes)});
      workspace_bytes = std::max(workspace_bytes, layer.footprint.workspace_bytes);
    }
    workspace_ = memory.take(workspace_bytes);
  }

  /// Enqueues forward and backward of all layers, and the copies of what they read from the batch.
  void enqueue(Stream& stream, MicroBatch const& batch) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      upload_side_inputs(stream, i, batch);
      forward(stream, i, batch);
    }
    for (std::size_t i = layers_.size(); i-- > 0;) {
      backward(stream, i, batch);
    }
  }

 private:
  /// What a layer has on the device, beside its parameters.
  struct LayerMemory {
    rp::DeviceBytes side_inputs;
    rp::DeviceBytes boundary;
    rp::DeviceBytes boundary_gradient;
    rp::DeviceBytes saved;
  };

  void upload_side_inputs(Stream& stream, std::size_t layer, MicroBatch const& batch) {
    auto const& table = facts_.layers[layer].side_inputs;
    for (std::size_t t = 0; t < table.size(); ++t) {
      auto const from = layout_.tensors.offset(layout_.of_layer[layer][t]);
      stream.copy(layers_[layer].side_inputs.subspan(table.offset(t), table[t].bytes()),
                  batch.staged.subspan(from, table[t].bytes()));
    }
  }

  void forward(Stream& stream, std::size_t layer, MicroBatch const& batch) {
    auto tensors = common_tensors(layer, batch);
    tensors.outputs = rp::views(facts_.layers[layer].boundary, layers_[layer].boundary);
    auto call = batch.call;
    call.saving = true;
    call.random.layer = static_cast<std::uint32_t>(layer);
    rp::ForwardContext<Stream> context(stream, call, tensors);
    model_.visit(rp::LayerId(layer), [&]<rp::Layer<Stream> L>(L const& l) { l.forward(context); });
  }

  void backward(Stream& stream, std::size_t layer, MicroBatch const& batch) {
    auto const& facts = facts_.layers[layer];
    auto tensors = common_tensors(layer, batch);
    if (!facts.backward_reads_parameters) {
      std::ranges::fill(tensors.parameters, rp::DeviceTensor{});
    }
    rp::gradient_views(tensors.output_gradients, facts.boundary, layers_[layer].boundary_gradient);
    if (layer > 0) {
      rp::gradient_views(
          tensors.input_gradients, facts.input, layers_[layer - 1].boundary_gradient);
    }
    for (auto const& place : blocks_.places[layer]) {
      auto const block = blocks_.use(place.use).block.index();
      tensors.parameter_gradients.push_back(
          view(blocks_.blocks[block].gradient, place.tensor, batch.gradients[block]));
    }
    auto call = batch.call;
    call.random.layer = static_cast<std::uint32_t>(layer);
    rp::BackwardContext<Stream> context(stream, call, tensors);
    model_.visit(rp::LayerId(layer), [&]<rp::Layer<Stream> L>(L const& l) { l.backward(context); });
  }

  /// What forward and backward of a layer both see.
  [[nodiscard]] rp::LayerTensors common_tensors(std::size_t layer, MicroBatch const& batch) const {
    auto const& facts = facts_.layers[layer];
    rp::LayerTensors tensors;
    for (auto const& place : blocks_.places[layer]) {
      auto const block = blocks_.use(place.use).block.index();
      tensors.parameters.push_back(
          view(blocks_.blocks[block].master, place.tensor, batch.weights[block]));
    }
    if (layer > 0) {
      tensors.inputs = rp::views(facts.input, layers_[layer - 1].boundary);
    }
    tensors.side_inputs = rp::views(facts.side_inputs, layers_[layer].side_inputs);
    tensors.saved = layers_[layer].saved;
    tensors.workspace = workspace_.subspan(0, facts.footprint.workspace_bytes);
    if (facts.is_loss) {
      tensors.loss = batch.loss;
    }
    return tensors;
  }

  Model const& model_;
  rp::ModelDescription const& facts_;
  rp::BatchLayout const& layout_;
  rp::ParameterBlocks const& blocks_;
  std::vector<LayerMemory> layers_;
  rp::DeviceBytes workspace_;
};

}  // namespace plain_loop
