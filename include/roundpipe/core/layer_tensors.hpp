// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The device tensors of one call of a layer, and how they are found by number or by name.

#include <roundpipe/config.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace roundpipe {

/// A layer's name and the tables of its tensors.
struct LayerTables {
  std::string name;
  ParameterTable parameters;
  TensorTable input;        ///< What it takes from the layer before.
  TensorTable boundary;     ///< What it hands to the next layer.
  TensorTable side_inputs;  ///< What it reads from the batch.
  TensorTable results;      ///< What `evaluate` hands to the caller.
};

/// The device tensors of one layer for one micro-batch. Each list has the order of the layer's
/// table. The caller owns the memory and keeps it until the enqueued work has run.
struct LayerTensors {
  /// Names the layer and its tensors; null where nobody does.
  LayerTables const* tables = nullptr;
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

/// The lists of \ref LayerTensors, named as the members of the contexts.
enum class TensorList : std::uint8_t {
  parameter,
  input,
  side_input,
  output,
  result,
  output_gradient,
  input_gradient,
  parameter_gradient,
};

/// Which tensor of a list: its number, or its name in the layer's table.
class TensorKey {
 public:
  constexpr TensorKey(std::size_t number) noexcept : number_(number) {}  // implicit, as below
  template <class Name>
    requires std::is_convertible_v<Name const&, std::string_view>
  constexpr TensorKey(Name const& name) noexcept : name_(name), named_(true) {}

  [[nodiscard]] constexpr bool named() const noexcept { return named_; }
  [[nodiscard]] constexpr std::size_t number() const noexcept { return number_; }
  [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }

 private:
  std::size_t number_ = 0;
  std::string_view name_;
  bool named_ = false;
};

/// Tensor \p key of \p list in \p tensors, which are those of layer number \p layer.
/// \throws Error (invalid_argument) when there is none: the message names the layer and what there
///         is.
[[nodiscard]] DeviceTensor const& find_tensor(LayerTensors const& tensors,
                                              std::size_t layer,
                                              TensorList list,
                                              TensorKey const& key);

/// The same tensor, which is absent or of \p type.
/// \throws Error (invalid_argument) also when it has another type.
[[nodiscard]] DeviceTensor const& find_tensor(LayerTensors const& tensors,
                                              std::size_t layer,
                                              TensorList list,
                                              TensorKey const& key,
                                              DType type);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/core/impl/layer_tensors.ipp>
#endif
