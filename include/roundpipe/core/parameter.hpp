// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a layer declares about its parameters: shape, type, initial values, decay group,
/// sharing.

#include <roundpipe/core/tensor.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace roundpipe {

/// The distribution of a parameter's initial values.
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

/// Whether weight decay applies to a parameter. Usually matrices decay, gains and biases do not.
enum class DecayGroup { decayed, exempt };

/// One parameter tensor of a layer.
struct ParameterSpec {
  TensorSpec tensor;
  Initial initial = Initial::zeros();
  DecayGroup decay = DecayGroup::decayed;
  /// Layers with the same key share one tensor. They must agree on shape and type; there is one
  /// master copy and one optimizer state, and gradients are summed in layer order. Empty: not
  /// shared.
  std::string sharing_key = {};
  /// Frozen parameters are never updated and have no gradient and no optimizer state. Layers that
  /// share a parameter must agree on this.
  bool frozen = false;
};

/// What an optimizer may know of a parameter.
struct ParameterInfo {
  std::string_view name{};  ///< As `for_each_parameter` tells it.
  Shape shape{};
  DecayGroup decay = DecayGroup::decayed;  ///< As its layer declares it.
};

/// The parameters of a layer, in the order in which its \c forward and \c backward see them.
using ParameterTable = std::vector<ParameterSpec>;

}  // namespace roundpipe
