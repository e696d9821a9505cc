// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Forward and backward of all layers for one micro-batch, one layer after another.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/runtime/serial/serial_parameters.hpp>
#include <roundpipe/runtime/state/batch_staging.hpp>
#include <roundpipe/runtime/state/finite_values.hpp>
#include <roundpipe/system/aligned_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// Runs a model's layers in host memory, and keeps what they leave for each other.
///
/// \tparam Stream runs what layers enqueue at once, on the caller's thread.
template <class Model, class Stream>
class SerialPasses {
 public:
  /// Takes memory for micro-batches up to \p capacity. \p model must outlive this. \p finite: whose
  /// values must be finite, else \ref forward and \ref backward throw Error (not_finite).
  SerialPasses(Model const& model,
               ModelDescription const& capacity,
               Stream stream,
               FinitePasses finite = FinitePasses::none)
      : model_(&model), stream_(std::move(stream)), finite_(finite) {
    Bytes workspace_bytes = 0;
    for (auto const& facts : capacity.layers) {
      layers_.push_back({AlignedMemory(facts.side_inputs.bytes()),
                         AlignedMemory(facts.boundary.bytes()),
                         AlignedMemory(gradient_table(facts.boundary).bytes()),
                         AlignedMemory(facts.footprint.saved_bytes)});
      workspace_bytes = std::max(workspace_bytes, facts.footprint.workspace_bytes);
    }
    workspace_ = AlignedMemory(workspace_bytes);
  }

  /// Runs all layers on a micro-batch, whose tensors of the batch are \p batch_tensors.
  /// \param results where the last layer's results go; empty: they are not wanted.
  /// \returns the micro-batch's loss, which a saving forward may leave to \ref backward.
  double forward(ShapedModel const& shaped,
                 SerialParameters const& parameters,
                 LayerCall call,
                 std::vector<HostTensor> const& batch_tensors,
                 std::vector<DeviceTensor> const& results) {
    auto const& model = shaped.model;
    for (std::size_t i = 0; i < model.size(); ++i) {
      std::vector<HostTensor> side_inputs;
      for (auto const t : shaped.batch.of_layer[i]) {
        side_inputs.push_back(batch_tensors[t]);
      }
      stage_tensors(side_inputs, model.layers[i].side_inputs, layers_[i].side_inputs.bytes());
      auto tensors = common_tensors(model, parameters, i, call.saving);
      tensors.outputs = views(model.layers[i].boundary, layers_[i].boundary.device_bytes());
      if (i + 1 == model.size()) {
        tensors.results = results;
        tensors.loss = {loss_.get(), 1};
      }
      call.random.layer = static_cast<std::uint32_t>(i);
      ForwardContext<Stream> context(stream_, call, tensors);
      run_named("forward", model, call, [&] {
        model_->visit(LayerId(i), [&](auto const& layer) { layer.forward(context); });
      });
      if (finite_ != FinitePasses::none) {
        for_each_written_forward(tensors, examine("forward", model, call));
      }
    }
    return *loss_;
  }

  /// The backward of the micro-batch whose saving forward has just run: adds to the round's sums
  /// of \p parameters. \returns the micro-batch's loss.
  double backward(ModelDescription const& model,
                  SerialParameters const& parameters,
                  LayerCall call) {
    for (std::size_t i = model.size(); i-- > 0;) {
      auto tensors = common_tensors(model, parameters, i, true);
      if (!model.layers[i].backward_reads_parameters) {
        std::fill(tensors.parameters.begin(), tensors.parameters.end(), DeviceTensor{});
      }
      tensors.output_gradients = gradient_views(model.layers[i].boundary, layers_[i]);
      if (i > 0) {
        tensors.input_gradients = gradient_views(model.layers[i].input, layers_[i - 1]);
      }
      tensors.parameter_gradients = parameters.gradients(i);
      if (i + 1 == model.size()) {
        tensors.loss = {loss_.get(), 1};
      }
      call.random.layer = static_cast<std::uint32_t>(i);
      BackwardContext<Stream> context(stream_, call, tensors);
      run_named("backward", model, call, [&] {
        model_->visit(LayerId(i), [&](auto const& layer) { layer.backward(context); });
      });
      if (finite_ == FinitePasses::all) {
        for_each_written_backward(tensors, examine("backward", model, call));
      }
    }
    return *loss_;
  }

 private:
  /// What a layer leaves for the layers around it, and for its own backward.
  struct LayerMemory {
    AlignedMemory side_inputs;
    AlignedMemory boundary;
    AlignedMemory boundary_gradient;
    AlignedMemory saved;
  };

  /// "backward of layer 3 (block), micro-batch 0: ".
  [[nodiscard]] static std::string name_of(std::string const& direction,
                                           ModelDescription const& model,
                                           LayerCall const& call) {
    return direction + " of " + model.name_of(call.random.layer) + ", micro-batch " +
           std::to_string(call.random.micro_batch) + ": ";
  }

  /// Runs \p f, in which the layer of \p call works. \throws Error where \p f throws, with a name.
  template <class F>
  static void run_named(char const* direction,
                        ModelDescription const& model,
                        LayerCall const& call,
                        F&& f) {
    try {
      f();
    } catch (...) {
      throw current_error(name_of(direction, model, call));
    }
  }

  /// Examines what a layer has written in \p call.
  [[nodiscard]] static auto examine(std::string const& direction,
                                    ModelDescription const& model,
                                    LayerCall const& call) {
    return [where = name_of(direction, model, call)](WrittenTensor const& written) {
      auto const bytes = written.tensor.bytes();
      require_finite(
          {bytes.device_pointer(), bytes.size()}, written.tensor.dtype(), where + written.title, 0);
    };
  }

  /// What forward and backward of \p layer both see.
  [[nodiscard]] LayerTensors common_tensors(ModelDescription const& model,
                                            SerialParameters const& parameters,
                                            std::size_t layer,
                                            bool saving) const {
    auto const& facts = model.layers[layer];
    auto const& memory = layers_[layer];
    LayerTensors tensors;
    tensors.tables = &facts;
    tensors.parameters = parameters.parameters(layer);
    if (layer > 0) {
      tensors.inputs = views(facts.input, layers_[layer - 1].boundary.device_bytes());
    }
    tensors.side_inputs = views(facts.side_inputs, memory.side_inputs.device_bytes());
    if (saving) {
      tensors.saved = memory.saved.device_bytes().subspan(0, facts.footprint.saved_bytes);
    }
    tensors.workspace = workspace_.device_bytes().subspan(0, facts.footprint.workspace_bytes);
    return tensors;
  }

  /// One view a tensor of \p boundary, absent for integers, of the gradients behind \p layer.
  [[nodiscard]] static std::vector<DeviceTensor> gradient_views(TensorTable const& boundary,
                                                                LayerMemory const& layer) {
    auto const packed = views(gradient_table(boundary), layer.boundary_gradient.device_bytes());
    std::vector<DeviceTensor> result;
    std::size_t next = 0;
    for (auto const& spec : boundary) {
      result.push_back(is_floating(spec.dtype) ? packed[next++] : DeviceTensor{});
    }
    return result;
  }

  Model const* model_;
  Stream stream_;
  FinitePasses finite_;
  std::vector<LayerMemory> layers_;
  AlignedMemory workspace_;
  std::unique_ptr<double> loss_ = std::make_unique<double>(0.0);
};

}  // namespace roundpipe
