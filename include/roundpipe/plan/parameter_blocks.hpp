// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The parameters of a model as blocks: one for each layer's own tensors, one for each
/// tensor that layers share.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/plan/model_description.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// Parameters that are uploaded, updated and ordered as one.
struct ParameterBlock {
  std::string name;
  std::vector<ParameterSpec> specs;
  TensorTable master;    ///< As declared: the master copy, and a slot's rounded gradient.
  TensorTable gradient;  ///< The same tensors in the accumulation type.
  std::vector<std::size_t> uses;  ///< Indices into \ref ParameterBlocks::uses, in layer order.
};

/// A layer's use of a block.
struct BlockUse {
  LayerId layer;
  BlockId block;
};

/// Where a layer's parameter lies: in which of the layer's uses, as which tensor of its block.
struct ParameterPlace {
  std::size_t use = 0;     ///< Index into \ref ParameterBlocks::uses.
  std::size_t tensor = 0;  ///< Index into the block's tables.
};

/// All blocks of a model, and who uses them.
struct ParameterBlocks {
  std::vector<ParameterBlock> blocks;                ///< In order of their first use.
  std::vector<BlockUse> uses;                        ///< In layer order.
  std::vector<std::vector<std::size_t>> layer_uses;  ///< By layer: indices into \c uses.
  std::vector<std::vector<ParameterPlace>> places;   ///< By layer, by parameter.

  [[nodiscard]] ParameterBlock const& block_of(std::size_t use) const {
    return blocks[uses[use].block.index()];
  }
  /// The number of parameters: elements of all blocks, shared ones counted once.
  [[nodiscard]] std::size_t parameter_count() const {
    std::size_t count = 0;
    for (auto const& block : blocks) {
      for (auto const& spec : block.specs) {
        count += spec.tensor.shape.size();
      }
    }
    return count;
  }
};

/// Forms the blocks of \p model.
/// \throws Error (invalid_argument) when a parameter is no f32 or bf16 tensor, or when tensors that
///         share a key differ in shape or type.
[[nodiscard]] inline ParameterBlocks form_blocks(ModelDescription const& model) {
  ParameterBlocks result;
  std::map<std::string, std::size_t> shared;  // sharing key to block
  auto const add_block = [&](std::string name) {
    result.blocks.push_back({std::move(name), {}, {}, {}, {}});
    return result.blocks.size() - 1;
  };
  for (std::size_t layer = 0; layer < model.size(); ++layer) {
    std::map<std::size_t, std::size_t> use_of;  // this layer's block to its use
    std::size_t own = static_cast<std::size_t>(-1);
    auto& uses = result.layer_uses.emplace_back();
    auto& places = result.places.emplace_back();
    for (auto const& spec : model.layers[layer].parameters) {
      if (spec.tensor.dtype != DType::f32 && spec.tensor.dtype != DType::bf16) {
        throw Error(Errc::invalid_argument,
                    model.name_of(layer) + ": parameter " + spec.tensor.name + " is " +
                        std::string(name_of(spec.tensor.dtype)) + "; trained are f32 and bf16");
      }
      std::size_t block = own;
      std::size_t tensor = 0;
      bool is_new_tensor = true;
      if (!spec.sharing_key.empty()) {
        auto const [found, inserted] = shared.try_emplace(spec.sharing_key, result.blocks.size());
        block = found->second;
        is_new_tensor = inserted;
        if (inserted) {
          add_block(spec.sharing_key);
        } else {
          auto const& first = result.blocks[block].specs.front().tensor;
          if (first.shape != spec.tensor.shape || first.dtype != spec.tensor.dtype) {
            throw Error(Errc::invalid_argument,
                        model.name_of(layer) + ": parameter " + spec.tensor.name +
                            " differs in shape or type from the one it shares as '" +
                            spec.sharing_key + "'");
          }
        }
      } else if (own == static_cast<std::size_t>(-1)) {
        block = own = add_block(model.name_of(layer));
      }
      if (is_new_tensor) {
        auto wide = spec.tensor;
        wide.dtype = accumulation_type(wide.dtype);
        tensor = result.blocks[block].master.add(spec.tensor);
        result.blocks[block].gradient.add(wide);
        result.blocks[block].specs.push_back(spec);
      }
      auto const [use, inserted] = use_of.try_emplace(block, result.uses.size());
      if (inserted) {
        result.uses.push_back({LayerId(layer), BlockId(block)});
        result.blocks[block].uses.push_back(use->second);
        uses.push_back(use->second);
      }
      places.push_back({use->second, tensor});
    }
  }
  return result;
}

}  // namespace roundpipe
