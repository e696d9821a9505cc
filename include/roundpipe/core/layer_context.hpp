// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a call of a layer receives: device tensors, the stream to enqueue on, and facts
/// about the micro-batch.

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/layer_tensors.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <cstddef>
#include <type_traits>

namespace roundpipe {

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

/// What the accessors of contexts return: the tensor, or a view of its elements as \p T.
template <class T>
using TensorAs = std::conditional_t<std::is_same_v<std::remove_const_t<T>, DeviceTensor>,
                                    DeviceTensor const&,
                                    TensorView<T>>;

/// The common part of \ref ForwardContext and \ref BackwardContext.
///
/// Tensors are found by number or by the name in the layer's table: `input(0)` and `input("x")` are
/// the \ref DeviceTensor, `input<float>(0)` is a \ref TensorView of its elements, which is empty
/// where the tensor is absent. Views of what a pass only reads are constant.
/// \throws Error (invalid_argument) where there is no such tensor, or it has another type: the
///         message names the layer and the tensor.
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
  [[nodiscard]] TensorView<double> loss() const noexcept {
    return TensorView<double>(tensors_->loss);
  }

  template <class T = DeviceTensor>
  [[nodiscard]] TensorAs<T const> parameter(TensorKey const& key) const {
    return find<T const>(TensorList::parameter, key);
  }
  template <class T = DeviceTensor>
  [[nodiscard]] TensorAs<T const> input(TensorKey const& key) const {
    return find<T const>(TensorList::input, key);
  }
  template <class T = DeviceTensor>
  [[nodiscard]] TensorAs<T const> side_input(TensorKey const& key) const {
    return find<T const>(TensorList::side_input, key);
  }
  /// Memory that lives from the saving forward to the backward of the same micro-batch.
  [[nodiscard]] TensorCarver saved() const noexcept {
    return TensorCarver{tensors_->kept, tensors_->saved};
  }
  /// Memory for this call alone, with undefined content.
  [[nodiscard]] TensorCarver workspace() const noexcept {
    return TensorCarver{tensors_->workspace};
  }

  /// All facts and all tensors, for a layer that calls another one with a part of them.
  [[nodiscard]] LayerCall const& call() const noexcept { return *call_; }
  [[nodiscard]] LayerTensors const& tensors() const noexcept { return *tensors_; }

 protected:
  template <class T>
  [[nodiscard]] TensorAs<T> find(TensorList list, TensorKey const& key) const {
    auto const layer = call_->random.layer;
    if constexpr (std::is_same_v<std::remove_const_t<T>, DeviceTensor>) {
      return find_tensor(*tensors_, layer, list, key);
    } else {
      auto const type = dtype_of<std::remove_const_t<T>>;
      return find_tensor(*tensors_, layer, list, key, type).template as<T>();
    }
  }

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
  template <class T = DeviceTensor>
  [[nodiscard]] TensorAs<T> output(TensorKey const& key) const {
    return this->template find<T>(TensorList::output, key);
  }
  /// Whether anyone reads the outputs. If not, as where a recomputation ends a stage, the forward
  /// may leave out what only they need. They have memory all the same.
  [[nodiscard]] bool wants_output() const noexcept { return this->call().wants_output; }
  /// Whether the caller wants the declared results (\c evaluate only).
  [[nodiscard]] bool wants_results() const noexcept { return !this->tensors().results.empty(); }
  template <class T = DeviceTensor>
  [[nodiscard]] TensorAs<T> result(TensorKey const& key) const {
    return this->template find<T>(TensorList::result, key);
  }
};

/// The arguments of \c backward.
template <class Stream>
class BackwardContext : public LayerContext<Stream> {
 public:
  using LayerContext<Stream>::LayerContext;

  template <class T = DeviceTensor>
  [[nodiscard]] TensorAs<T const> output_gradient(TensorKey const& key) const {
    return this->template find<T const>(TensorList::output_gradient, key);
  }
  /// The layer overwrites this tensor completely. Not present() for integer tensors and where no
  /// layer needs the gradient.
  template <class T = DeviceTensor>
  [[nodiscard]] TensorAs<T> input_gradient(TensorKey const& key) const {
    return this->template find<T>(TensorList::input_gradient, key);
  }
  /// The layer adds to this tensor. It holds the sum over the slot's earlier micro-batches, in the
  /// accumulation type. Not present() for a frozen parameter.
  template <class T = DeviceTensor>
  [[nodiscard]] TensorAs<T> parameter_gradient(TensorKey const& key) const {
    return this->template find<T>(TensorList::parameter_gradient, key);
  }
};

}  // namespace roundpipe
