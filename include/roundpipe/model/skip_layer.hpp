// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A layer that hands on a tensor beside its own, for layers further on.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/layer_tensors.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/model_description.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// What a layer does with the tensor that it hands on.
enum class SkipRole : std::uint8_t {
  fork,   ///< Makes it: a copy of the last tensor of its boundary.
  past,   ///< Takes it, and does not read it.
  reads,  ///< Takes it as the last tensor of its input, and reads it.
};

/// The name, shape and type of a carried tensor, by the extents of the micro-batch.
using CarriedTensor = std::function<TensorSpec(BatchShape)>;

/// The last tensor of the boundary of \p begin.
/// \throws Error (invalid_argument), when it is asked for, where that boundary is empty.
template <LayerDescription L>
[[nodiscard]] CarriedTensor last_output(L begin) {
  return [begin = std::move(begin)](BatchShape shape) {
    TensorTable const boundary = begin.boundary(shape);
    if (boundary.empty()) {
      throw Error(Errc::invalid_argument,
                  "'" + detail::name_of(begin) +
                      "' begins a skip connection, but hands over no tensor to carry");
    }
    return boundary[boundary.size() - 1];
  };
}

/// \brief Layer \p L with one more tensor in its boundary, the last one: the carried tensor. All
/// else, from its parameters to its name, is that of the layer.
///
/// The carried tensor reaches the boundary by a copy on the device, unless it lies there already
/// (rule 12 of \ref Layer). Its gradient goes back likewise, or is added to the one that the layer
/// itself computes; see \ref AddsTensors. The layer's own tensors keep their numbers and names.
template <LayerDescription L, SkipRole role>
class SkipLayer {
 public:
  SkipLayer(L layer, CarriedTensor carried)
      : layer_(std::move(layer)), carried_(std::move(carried)) {}

  [[nodiscard]] std::string name() const { return detail::name_of(layer_); }
  [[nodiscard]] ParameterTable parameters() const { return layer_.parameters(); }
  [[nodiscard]] TensorTable input(BatchShape shape) const {
    TensorTable table = layer_.input(shape);
    if constexpr (role == SkipRole::past) {
      table.add(carried_(shape));
    }
    return table;
  }
  [[nodiscard]] TensorTable boundary(BatchShape shape) const {
    TensorTable table = layer_.boundary(shape);
    table.add(carried_(shape));
    return table;
  }
  [[nodiscard]] Footprint footprint(BatchShape shape) const {
    Footprint footprint = layer_.footprint(shape);
    if constexpr (role == SkipRole::fork) {  // the sum of both gradients lies behind its workspace
      footprint.workspace_bytes = align_up(footprint.workspace_bytes) + carried_(shape).bytes();
    }
    return footprint;
  }
  [[nodiscard]] TensorTable side_inputs(BatchShape shape) const
    requires HasSideInputs<L>
  {
    return layer_.side_inputs(shape);
  }
  [[nodiscard]] FlopCount work(BatchShape shape) const
    requires HasWork<L>
  {
    return layer_.work(shape);
  }
  [[nodiscard]] std::vector<Bytes> save_levels(BatchShape shape) const
    requires HasSaveLevels<L>
  {
    return layer_.save_levels(shape);
  }
  [[nodiscard]] bool backward_reads_parameters() const
    requires HasBackwardReads<L>
  {
    return layer_.backward_reads_parameters();
  }

  /// The carried tensor, and what the layer itself carries behind its own tensors.
  [[nodiscard]] Carries carries() const {
    if constexpr (role == SkipRole::fork) {
      return {};
    }
    Carries carries;
    if constexpr (role == SkipRole::past && HasCarries<L>) {
      carries = layer_.carries();
    }
    ++carries.tensors;
    carries.gradients += role == SkipRole::past ? 1 : 0;
    return carries;
  }

  template <class Stream>
    requires HasForward<L, Stream>
  void forward(ForwardContext<Stream>& ctx) const {
    check_stream<Stream>();
    auto tensors = ctx.tensors();
    auto const carried = take_last(tensors.outputs);
    auto const source = role == SkipRole::fork   ? tensors.outputs.back()
                        : role == SkipRole::past ? take_last(tensors.inputs)
                                                 : tensors.inputs.back();
    ForwardContext<Stream> inner(ctx.stream(), ctx.call(), tensors);
    layer_.forward(inner);
    if (ctx.wants_output()) {
      hand_on(ctx.stream(), carried, source);
    }
  }

  template <class Stream>
    requires HasBackward<L, Stream>
  void backward(BackwardContext<Stream>& ctx) const {
    check_stream<Stream>();
    auto tensors = ctx.tensors();
    auto const gradient = take_last(tensors.output_gradients);
    if (!gradient.present()) {  // of integers
      if (role == SkipRole::past) {
        tensors.input_gradients.pop_back();
      }
      return call_backward(ctx, tensors);
    }
    if constexpr (role == SkipRole::fork) {
      auto& own = tensors.output_gradients.back();
      auto const sum = take_sum(tensors, ctx.shape());
      ctx.stream().copy(sum, own);
      ctx.stream().add(sum, gradient);
      own = sum;
      call_backward(ctx, tensors);
    } else {
      auto const handed = role == SkipRole::past ? take_last(tensors.input_gradients)
                                                 : tensors.input_gradients.back();
      call_backward(ctx, tensors);
      if (!handed.present()) {
        return;
      }
      if constexpr (role == SkipRole::past) {
        hand_on(ctx.stream(), handed, gradient);
      } else {
        ctx.stream().add(handed, gradient);
      }
    }
  }

 private:
  template <class Stream>
  static void check_stream() {
    static_assert(AddsTensors<Stream>,
                  "a skip connection needs a stream with 'copy' and 'add' of two DeviceTensors");
  }
  /// A copy, unless both are one tensor.
  template <class Stream>
  static void hand_on(Stream& stream, DeviceTensor const& to, DeviceTensor const& from) {
    if (to.device_pointer() != from.device_pointer()) {
      stream.copy(to, from);
    }
  }
  static DeviceTensor take_last(std::vector<DeviceTensor>& list) {
    auto const last = list.back();
    list.pop_back();
    return last;
  }
  template <class Stream>
  void call_backward(BackwardContext<Stream>& ctx, LayerTensors const& tensors) const {
    BackwardContext<Stream> inner(ctx.stream(), ctx.call(), tensors);
    layer_.backward(inner);
  }
  /// Cuts the room for the sum of gradients off the workspace.
  DeviceTensor take_sum(LayerTensors& tensors, BatchShape shape) const {
    auto const spec = carried_(shape);
    auto const own_bytes = layer_.footprint(shape).workspace_bytes;
    DeviceTensor const sum{
        tensors.workspace.subspan(align_up(own_bytes), spec.bytes()), spec.shape, spec.dtype};
    tensors.workspace = tensors.workspace.subspan(0, own_bytes);
    return sum;
  }

  L layer_;
  CarriedTensor carried_;
};

}  // namespace roundpipe
