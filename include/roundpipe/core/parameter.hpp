// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a layer says of its parameters: shape, type, first values, decay group, sharing.

#include <roundpipe/core/tensor.hpp>

#include <string>
#include <vector>

namespace roundpipe {

/// The distribution of a parameter's first values.
struct Initial {
  enum class Kind { zeros, ones, normal };
  Kind kind = Kind::zeros;
  float deviation = 0;  ///< Standard deviation of \c Kind::normal, whose mean is 0.

  [[nodiscard]] static constexpr Initial zeros() noexcept { return {Kind::zeros, 0}; }
  [[nodiscard]] static constexpr Initial ones() noexcept { return {Kind::ones, 0}; }
  [[nodiscard]] static constexpr Initial normal(float deviation) noexcept {
    return {Kind::normal, deviation};
  }
};

/// Whether weight decay applies to a parameter; customary for matrices, not for gains and biases.
enum class DecayGroup { decayed, exempt };

/// One parameter tensor of a layer.
struct ParameterSpec {
  TensorSpec tensor;
  Initial initial = Initial::zeros();
  DecayGroup decay = DecayGroup::decayed;
  /// Layers that name the same key share one tensor: same shape and type, one master copy, one
  /// optimizer state, gradients summed in layer order. Empty: the layer's own.
  std::string sharing_key = {};
  /// Frozen: never updated; it has no optimizer state and no gradient. Layers that share it agree.
  bool frozen = false;
};

/// The parameters of a layer, in the order in which its \c forward and \c backward see them.
using ParameterTable = std::vector<ParameterSpec>;

}  // namespace roundpipe
