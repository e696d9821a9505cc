// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the layer of a compute action is called with.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/memory/boundary_place.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/runtime/actions/device_places.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// One call of a layer, and what a stream does around it. It is used again and again, so that its
/// lists keep their memory.
struct PreparedLayer {
  /// A gradient that is rounded to the declared type of its parameter.
  struct Rounding {
    DeviceTensor to;
    DeviceSpan<float const> from;
  };

  LayerCall call;
  LayerTensors tensors;
  std::vector<DeviceBytes> zeroed;  ///< Before the layer: gradients that it begins.
  std::vector<Rounding> rounded;    ///< Behind the layer: gradients that are complete.
};

/// Prepares the layers of compute actions. Not changed by use: any thread may ask.
class LayerCalls {
 public:
  /// All arguments must outlive this.
  LayerCalls(DevicePlaces const& places, ParameterBlocks const& blocks)
      : places_(places), blocks_(blocks) {}

  /// Prepares the forward or the recomputation that \p here is.
  void prepare_forward(DeviceAction const& here, PreparedLayer& layer) const;

  /// Prepares the backward that \p here is.
  void prepare_backward(DeviceAction const& here, PreparedLayer& layer) const;

 private:
  /// What forward and backward have in common.
  void prepare(DeviceAction const& here, PreparedLayer& layer) const;

  /// Replaces \p list by the tensors of \p boundary, or by their gradients: it is a resident one
  /// among \p buffers, or lies at \p place.
  void list_boundary(DeviceAction const& here,
                     TensorTable const& boundary,
                     std::vector<Buffer> const& buffers,
                     BoundaryPlace const& place,
                     std::vector<DeviceTensor>& list) const;
  void list_gradients(DeviceAction const& here,
                      TensorTable const& boundary,
                      std::vector<Buffer> const& buffers,
                      BoundaryPlace const& place,
                      std::vector<DeviceTensor>& list) const;

  /// Adds the tensors of \p boundary that lie apart from their block at \p place.
  void list_apart(DeviceAction const& here,
                  TensorTable const& boundary,
                  BoundaryPlace const& place,
                  std::vector<DeviceTensor>& list) const;

  /// What the layer saves: what the host keeps of it lies in an entry of its own.
  void prepare_saved(DeviceAction const& here, PreparedLayer& layer) const;

  /// Lists the tensors of one use of \p block whose gradients are rounded to their declared types.
  static void list_rounded(UsePlace const& place,
                           ParameterBlock const& block,
                           DeviceBytes gradients,
                           PreparedLayer& layer);

  [[nodiscard]] static DeviceTensor tensor(DeviceBytes entry,
                                           Bytes base,
                                           TensorTable const& table,
                                           std::size_t t) {
    return {
        entry.subspan(base + table.offset(t), table[t].bytes()), table[t].shape, table[t].dtype};
  }

  DevicePlaces const& places_;
  ParameterBlocks const& blocks_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/actions/impl/layer_calls.ipp>
#endif
