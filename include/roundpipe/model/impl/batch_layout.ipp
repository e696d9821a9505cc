// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/model_description.hpp>

#include <cstddef>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE BatchLayout lay_out_batch(ModelDescription const& model) {
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
