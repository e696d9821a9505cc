// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which values of layers must be finite, and the error of one that is not.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/layer_tensors.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace roundpipe {

/// Whose values must be finite.
enum class FinitePasses : std::uint8_t { none, forward, all };

/// With a loss scale a backward may overflow: its step is skipped.
[[nodiscard]] constexpr FinitePasses finite_passes(bool checks, bool has_loss_scale) noexcept {
  return !checks ? FinitePasses::none : has_loss_scale ? FinitePasses::forward : FinitePasses::all;
}

/// What a `FiniteCheck` takes of the host's memory for each device.
[[nodiscard]] constexpr Bytes finite_check_bytes(FinitePasses passes) noexcept {
  return passes == FinitePasses::none ? 0 : Bytes{1} << 20U;
}

/// A tensor that a layer has written: "output 'y'" is its title.
struct WrittenTensor {
  std::string title;
  DeviceTensor tensor;
};

/// \throws Error (not_finite) for the first of \p elements that is NaN or infinite: "output 'y'[17]
///         is -inf". Integers are always finite.
/// \param begin The index of the first one in its tensor.
void require_finite(HostSpan<std::byte const> elements,
                    DType type,
                    std::string const& title,
                    std::size_t begin);

/// Calls `f(WrittenTensor)` for all that a forward hands on.
template <class F>
void for_each_written_forward(LayerTensors const& tensors, F&& f) {
  auto const& tables = *tensors.tables;
  for (std::size_t i = 0; i < tensors.outputs.size(); ++i) {
    f(WrittenTensor{"output '" + tables.boundary[i].name + "'", tensors.outputs[i]});
  }
  for (std::size_t i = 0; i < tensors.results.size(); ++i) {
    f(WrittenTensor{"result '" + tables.results[i].name + "'", tensors.results[i]});
  }
}

/// Calls `f(WrittenTensor)` for all that a backward hands on, and the sums that it adds to.
template <class F>
void for_each_written_backward(LayerTensors const& tensors, F&& f) {
  auto const& tables = *tensors.tables;
  for (std::size_t i = 0; i < tensors.input_gradients.size(); ++i) {
    if (tensors.input_gradients[i].present()) {
      f(WrittenTensor{"input gradient '" + tables.input[i].name + "'", tensors.input_gradients[i]});
    }
  }
  for (std::size_t i = 0; i < tensors.parameter_gradients.size(); ++i) {
    if (tensors.parameter_gradients[i].present()) {
      f(WrittenTensor{"gradient of parameter '" + tables.parameters[i].tensor.name + "'",
                      tensors.parameter_gradients[i]});
    }
  }
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/finite_values.ipp>
#endif
