// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a call of a layer receives: device tensors, the stream to enqueue on, and facts
/// about the micro-batch.

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// The device tensors of one layer for one micro-batch. Each list has the order of the layer's
/// table. The caller owns the memory and keeps it until the enqueued work has run.
struct LayerTensors {
  std::vector<DeviceTensor> parameters;
  std::vector<DeviceTensor> inputs;
  std::vector<DeviceTensor> side_inputs;
  std::vector<DeviceTensor> outputs;              ///< Forward only.
  std::vector<DeviceTensor> results;              ///< Forward of \c evaluate only.
  std::vector<DeviceTensor> output_gradients;     ///< Backward only.
  std::vector<DeviceTensor> input_gradients;      ///< Backward only; not present() if unwanted.
  std::vector<DeviceTensor> parameter_gradients;  ///< Backward only; not present() where frozen.
  DeviceBytes kept;                               ///< The first bytes of \c saved that lie apart.
  DeviceBytes saved;                              ///< Empty when nothing is saved here.
  DeviceBytes workspace;
  DeviceSpan<double> loss;  ///< Loss layers only: one element.
};

/// Facts about a call besides its tensors.
struct LayerCall {
  BatchShape shape;           ///< The micro-batch's actual extents.
  RandomKey random;           ///< The same in forward, recomputation and backward.
  double gradient_scale = 1;  ///< Loss scale divided by the number of loss terms of the whole call.
  bool saving = false;        ///< Forward only: \c backward will follow and needs \c saved().
  std::size_t found_level = 0;  ///< Forward only: the save level that \c saved() holds already.
  bool evaluating = false;      ///< No dropout; declared results are wanted.
  bool wants_output = true;     ///< Forward only: a later layer reads the outputs.
};

/// The common part of \ref ForwardContext and \ref BackwardContext.
template <class Stream>
class LayerContext {
 public:
  LayerContext(Stream& stream, LayerCall const& call, LayerTensors const& tensors) noexcept
      : stream_(&stream), call_(&call), tensors_(&tensors) {}

  /// The compute stream of the device. Layers enqueue on this stream only.
  [[nodiscard]] Stream& stream() const noexcept { return *stream_; }
  [[nodiscard]] BatchShape shape() const noexcept { return call_->shape; }
  [[nodiscard]] RandomKey const& random() const noexcept { return call_->random; }
  [[nodiscard]] bool evaluating() const noexcept { return call_->evaluating; }
  /// The factor of the loss: a loss layer multiplies its sum of terms, and its gradients, by this.
  [[nodiscard]] double gradient_scale() const noexcept { return call_->gradient_scale; }
  /// Where a loss layer writes the loss of the micro-batch, one number with gradient_scale()
  /// applied. The saving forward may leave this write to the backward.
  [[nodiscard]] DeviceSpan<double> loss() const noexcept { return tensors_->loss; }

  [[nodiscard]] DeviceTensor const& parameter(std::size_t i) const {
    return tensors_->parameters.at(i);
  }
  [[nodiscard]] DeviceTensor const& input(std::size_t i) const { return tensors_->inputs.at(i); }
  [[nodiscard]] DeviceTensor const& side_input(std::size_t i) const {
    return tensors_->side_inputs.at(i);
  }
  /// Memory that lives from the saving forward to the backward of the same micro-batch.
  [[nodiscard]] TensorCarver saved() const noexcept {
    return TensorCarver{tensors_->kept, tensors_->saved};
  }
  /// Memory for this call alone, with undefined content.
  [[nodiscard]] TensorCarver workspace() const noexcept {
    return TensorCarver{tensors_->workspace};
  }

 protected:
  [[nodiscard]] LayerCall const& call() const noexcept { return *call_; }
  [[nodiscard]] LayerTensors const& tensors() const noexcept { return *tensors_; }

 private:
  Stream* stream_;
  LayerCall const* call_;
  LayerTensors const* tensors_;
};

/// The arguments of \c forward.
template <class Stream>
class ForwardContext : public LayerContext<Stream> {
 public:
  using LayerContext<Stream>::LayerContext;

  /// Whether a backward follows. If so, the forward writes what the backward needs to \ref
  /// LayerContext::saved(), which is empty otherwise.
  [[nodiscard]] bool saving() const noexcept { return this->call().saving; }
  /// The save level whose bytes \ref LayerContext::saved() holds already, from an earlier forward
  /// of the same micro-batch: counted from 1 in the layer's `save_levels`; 0 is nothing. The
  /// forward may leave out what only these bytes need. If it writes them, it writes the same.
  [[nodiscard]] std::size_t found_level() const noexcept { return this->call().found_level; }
  [[nodiscard]] DeviceTensor const& output(std::size_t i) const {
    return this->tensors().outputs.at(i);
  }
  /// Whether anyone reads the outputs. If not, as where a recomputation ends a stage, the forward
  /// may leave out what only they need. They have memory all the same.
  [[nodiscard]] bool wants_output() const noexcept { return this->call().wants_output; }
  /// Whether the caller wants the declared results (\c evaluate only).
  [[nodiscard]] bool wants_results() const noexcept { return !this->tensors().results.empty(); }
  [[nodiscard]] DeviceTensor const& result(std::size_t i) const {
    return this->tensors().results.at(i);
  }
};

/// The arguments of \c backward.
template <class Stream>
class BackwardContext : public LayerContext<Stream> {
 public:
  using LayerContext<Stream>::LayerContext;

  [[nodiscard]] DeviceTensor const& output_gradient(std::size_t i) const {
    return this->tensors().output_gradients.at(i);
  }
  /// The layer overwrites this tensor completely. Not present() for integer tensors and where no
  /// layer needs the gradient.
  [[nodiscard]] DeviceTensor const& input_gradient(std::size_t i) const {
    return this->tensors().input_gradients.at(i);
  }
  /// The layer adds to this tensor. It holds the sum over the slot's earlier micro-batches, in the
  /// accumulation type. Not present() for a frozen parameter.
  [[nodiscard]] DeviceTensor const& parameter_gradient(std::size_t i) const {
    return this->tensors().parameter_gradients.at(i);
  }
};

}  // namespace roundpipe
