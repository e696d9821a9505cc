// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The results of one layer's two passes for one micro-batch, in double on the host. Tests
/// that nvcc compiles reach Eigen, which nvcc cannot compile, through this header.

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <cstdint>
#include <vector>

namespace roundpipe::test {

/// A layer, and a micro-batch for it.
struct LayerCase {
  enum class Kind { embedding, block, frozen_block, head };

  Kind kind = Kind::block;
  nn::TransformerConfig config;
  BatchShape shape;
  std::vector<std::int32_t> indices;  ///< Tokens or labels; a block has none.

  /// The facts of its passes that both passes share.
  [[nodiscard]] LayerCall call() const {
    LayerCall call;
    call.shape = shape;
    call.random = {5, 3, 2, 1, 0};
    call.gradient_scale = 0.7;
    return call;
  }
};

/// The elements of every tensor of a layer, in the order of its tables; empty where there are none.
struct LayerValues {
  using Lists = std::vector<std::vector<double>>;

  Lists parameters;
  Lists inputs;
  Lists output_gradients;
  Lists sums;  ///< The initial values to which the backward adds parameter gradients.

  Lists outputs;
  Lists results;
  double loss = 0;  ///< Of an evaluation's forward.
  Lists input_gradients;
  Lists parameter_gradients;  ///< Including the initial sums.
  double training_loss = 0;   ///< After the backward.
};

/// Both passes of \p c in double, on random operands that the case's types hold exactly; each call
/// draws new ones.
[[nodiscard]] LayerValues host_passes(LayerCase const& c);

}  // namespace roundpipe::test
