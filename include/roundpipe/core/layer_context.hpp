// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a layer finds when it is called: its tensors on the device, the stream to enqueue
/// on, and the facts about the micro-batch.

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// The device tensors of one layer for one micro-batch, each list in the order of the layer's
/// table. Memory belongs to the caller and holds until the work enqueued by the call has run.
struct LayerTensors {
  std::vector<DeviceTensor> parameters;
  std::vector<DeviceTensor> inputs;
  std::vector<DeviceTensor> side_inputs;
  std::vector<DeviceTensor> outputs;              ///< Forward only.
  std::vector<DeviceTensor> results;              ///< Forward of \c evaluate only.
  std::vector<DeviceTensor> output_gradients;     ///< Backward only.
  std::vector<DeviceTensor> input_gradients;      ///< Backward only; not present() where unwanted.
  std::vector<DeviceTensor> parameter_gradients;  ///< Backward only; not present() where frozen.
  DeviceBytes saved;                              ///< Empty when nothing is to be saved.
  DeviceBytes workspace;
  DeviceSpan<double> loss;  ///< Of a loss layer only: one element.
};

/// What is known of a call besides its tensors.
struct LayerCall {
  BatchShape shape;           ///< The micro-batch's actual extents.
  RandomKey random;           ///< The same in forward, recomputation and backward.
  double gradient_scale = 1;  ///< One over the loss terms of the whole call, times any loss scale.
  bool saving = false;        ///< Forward only: \c backward will follow and needs \c saved().
  bool evaluating = false;    ///< No dropout; declared results are wanted.
};

/// What \c forward and \c backward have in common.
template <class Stream>
class LayerContext {
 public:
  LayerContext(Stream& stream, LayerCall const& call, LayerTensors const& tensors) noexcept
      : stream_(&stream), call_(&call), tensors_(&tensors) {}

  /// The device's compute stream: enqueue here, and only here.
  [[nodiscard]] Stream& stream() const noexcept { return *stream_; }
  [[nodiscard]] BatchShape shape() const noexcept { return call_->shape; }
  [[nodiscard]] RandomKey const& random() const noexcept { return call_->random; }
  [[nodiscard]] bool evaluating() const noexcept { return call_->evaluating; }
  /// The factor of the loss: a loss layer's loss and gradients are its sum of terms times this.
  [[nodiscard]] double gradient_scale() const noexcept { return call_->gradient_scale; }
  /// Where a loss layer writes the micro-batch's loss, gradient_scale() applied: one number. The
  /// saving forward may leave it to the backward.
  [[nodiscard]] DeviceSpan<double> loss() const noexcept { return tensors_->loss; }

  [[nodiscard]] DeviceTensor const& parameter(std::size_t i) const {
    return tensors_->parameters.at(i);
  }
  [[nodiscard]] DeviceTensor const& input(std::size_t i) const { return tensors_->inputs.at(i); }
  [[nodiscard]] DeviceTensor const& side_input(std::size_t i) const {
    return tensors_->side_inputs.at(i);
  }
  /// The memory that lives from the saving forward to the backward of the same micro-batch.
  [[nodiscard]] TensorCarver saved() const noexcept { return TensorCarver{tensors_->saved}; }
  /// Memory for this call alone; its content is undefined.
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

/// What \c forward finds.
template <class Stream>
class ForwardContext : public LayerContext<Stream> {
 public:
  using LayerContext<Stream>::LayerContext;

  /// Whether a backward follows: what it needs goes to \ref LayerContext::saved(), which is empty
  /// otherwise.
  [[nodiscard]] bool saving() const noexcept { return this->call().saving; }
  [[nodiscard]] DeviceTensor const& output(std::size_t i) const {
    return this->tensors().outputs.at(i);
  }
  /// Whether declared results are wanted (in \c evaluate only).
  [[nodiscard]] bool wants_results() const noexcept { return !this->tensors().results.empty(); }
  [[nodiscard]] DeviceTensor const& result(std::size_t i) const {
    return this->tensors().results.at(i);
  }
};

/// What \c backward finds.
template <class Stream>
class BackwardContext : public LayerContext<Stream> {
 public:
  using LayerContext<Stream>::LayerContext;

  [[nodiscard]] DeviceTensor const& output_gradient(std::size_t i) const {
    return this->tensors().output_gradients.at(i);
  }
  /// To be overwritten whole. Not present() for integer tensors and where nobody needs it.
  [[nodiscard]] DeviceTensor const& input_gradient(std::size_t i) const {
    return this->tensors().input_gradients.at(i);
  }
  /// To be added to: it holds the sum over the slot's earlier micro-batches, in the accumulation
  /// type. Not present() for a frozen parameter, whose gradient nobody needs.
  [[nodiscard]] DeviceTensor const& parameter_gradient(std::size_t i) const {
    return this->tensors().parameter_gradients.at(i);
  }
};

}  // namespace roundpipe
