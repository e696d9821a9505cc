// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The tensors that a model's layers read from a batch, each once.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/model_description.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace roundpipe {

/// The named tensors of a batch, per micro-batch, and which layer reads which.
struct BatchLayout {
  TensorTable tensors;                             ///< At capacity.
  std::vector<std::vector<std::size_t>> of_layer;  ///< By layer, by side input: index above.
};

/// Collects the side inputs of all layers by name.
/// \throws Error (invalid_argument) when two layers want different tensors under one name.
[[nodiscard]] inline BatchLayout lay_out_batch(ModelDescription const& model) {
  BatchLayout layout;
  for (std::size_t layer = 0; layer < model.size(); ++layer) {
    auto& indices = layout.of_layer.emplace_back();
    for (auto const& spec : model.layers[layer].side_inputs) {
      std::size_t index = 0;
      while (index < layout.tensors.size() && layout.tensors[index].name != spec.name) {
        ++index;
      }
      if (index == layout.tensors.size()) {
        layout.tensors.add(spec);
      } else if (layout.tensors[index] != spec) {
        throw Error(Errc::invalid_argument,
                    model.name_of(layer) + " reads '" + spec.name + "' as " +
                        std::string(name_of(spec.dtype)) + to_string(spec.shape) +
                        ", another layer reads it differently");
      }
      indices.push_back(index);
    }
  }
  return layout;
}

}  // namespace roundpipe
