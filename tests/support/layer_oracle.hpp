// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief One layer and one micro-batch, and what both passes make of it in double on the host: a
/// door between tests that nvcc compiles and Eigen, which it does not.

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
  std::vector<std::int32_t> indices;  ///< Tokens or labels; none for a block.

  /// The facts of its passes, but for what tells one pass from another.
  [[nodiscard]] LayerCall call() const {
    LayerCall call;
    call.shape = shape;
    call.random = {5, 3, 2, 1, 0};
    call.gradient_scale = 0.7;
    return call;
  }
};

/// The elements of every tensor of a layer, in the order of its tables; none where it has none.
struct LayerValues {
  using Lists = std::vector<std::vector<double>>;

  Lists parameters;
  Lists inputs;
  Lists output_gradients;
  Lists sums;  ///< What parameter gradients are added to.

  Lists outputs;
  Lists results;
  double loss = 0;  ///< Of the forward of an evaluation.
  Lists input_gradients;
  Lists parameter_gradients;  ///< With the sums before.
  double training_loss = 0;   ///< When the backward is over.
};

/// Both passes of \p c in double, on random operands that the case's types hold exactly: other ones
/// at each call.
[[nodiscard]] LayerValues host_passes(LayerCase const& c);

}  // namespace roundpipe::test
