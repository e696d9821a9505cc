// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/block_shards.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE ParameterBlock const& ParameterBlocks::block_of(BlockUseId use) const {
  return blocks[this->use(use).block.index()];
}

ROUNDPIPE_INLINE std::size_t ParameterBlocks::parameter_count() const {
  std::size_t count = 0;
  for (auto const& block : blocks) {
    for (auto const& spec : block.specs) {
      count += spec.tensor.shape.size();
    }
  }
  return count;
}

ROUNDPIPE_INLINE std::string ParameterBlocks::name_of(BlockTensor parameter) const {
  auto const first = use(blocks[parameter.block.index()].uses.front()).layer;
  return std::to_string(first.index()) + "." + tensor(parameter).name;
}

ROUNDPIPE_INLINE std::string ParameterBlocks::name_of(LayerId layer, std::size_t index) const {
  require(layer.valid() && layer.index() < places.size() && index < places[layer.index()].size(),
          Errc::invalid_argument,
          "there is no such parameter");
  auto const place = places[layer.index()][index];
  return name_of({use(place.use).block, place.tensor});
}

ROUNDPIPE_INLINE BlockTensor ParameterBlocks::find(std::string_view name) const {
  BlockTensor found;
  for_each([&](BlockTensor parameter) {
    if (name_of(parameter) == name) {
      found = parameter;
    }
  });
  if (!found.block.valid()) {
    throw Error(Errc::invalid_argument, "there is no parameter " + std::string(name));
  }
  return found;
}

ROUNDPIPE_INLINE ParameterInfo ParameterBlocks::info_of(BlockTensor parameter,
                                                        std::string_view name) const {
  auto const& spec = blocks[parameter.block.index()].specs[parameter.tensor];
  return {name, spec.tensor.shape, spec.decay};
}

ROUNDPIPE_INLINE ParameterBlocks form_blocks(ModelDescription const& model,
                                             bool sums_gradients,
                                             StateType sum_type) {
  ParameterBlocks result;
  std::map<std::string, std::size_t> shared;  // sharing key to block
  auto const add_block = [&](bool frozen) {
    result.blocks.emplace_back().frozen = frozen;
    return result.blocks.size() - 1;
  };
  for (std::size_t layer = 0; layer < model.size(); ++layer) {
    constexpr auto none = static_cast<std::size_t>(-1);
    std::size_t own[] = {none, none};  // trained, frozen
    auto& uses = result.layer_uses.emplace_back();
    auto& places = result.places.emplace_back();
    for (auto const& spec : model.layers[layer].parameters) {
      auto const type = spec.tensor.dtype;
      if (type != DType::f32 && type != DType::bf16 && type != DType::f16) {
        throw Error(Errc::invalid_argument,
                    model.name_of(layer) + ": parameter " + spec.tensor.name + " is " +
                        std::string(name_of(type)) + "; parameters are f32, bf16 or f16");
      }
      auto& own_block = own[spec.frozen ? 1 : 0];
      std::size_t block = own_block;
      std::size_t tensor = 0;
      bool is_new_tensor = true;
      if (!spec.sharing_key.empty()) {
        auto const [found, inserted] = shared.try_emplace(spec.sharing_key, result.blocks.size());
        block = found->second;
        is_new_tensor = inserted;
        if (inserted) {
          add_block(spec.frozen);
        } else {
          auto const& first = result.blocks[block].specs.front();
          if (first.tensor.shape != spec.tensor.shape || first.tensor.dtype != spec.tensor.dtype ||
              first.frozen != spec.frozen) {
            throw Error(Errc::invalid_argument,
                        model.name_of(layer) + ": parameter " + spec.tensor.name +
                            " differs in shape, type or being frozen from the one it shares as '" +
                            spec.sharing_key + "'");
          }
        }
      } else if (own_block == none) {
        block = own_block = add_block(spec.frozen);
      }
      if (is_new_tensor) {
        auto wide = spec.tensor;
        wide.dtype = accumulation_type(wide.dtype);
        auto& of_tensor = result.blocks[block];
        tensor = of_tensor.master.add(spec.tensor);
        of_tensor.gradient.add(wide);
        of_tensor.rounded_tensors.push_back(
            wide.dtype == spec.tensor.dtype ? std::nullopt
                                            : std::optional(of_tensor.rounded.add(spec.tensor)));
        of_tensor.specs.push_back(spec);
      }
      auto& uses_of_block = result.blocks[block].uses;
      if (uses_of_block.empty() || result.use(uses_of_block.back()).layer != LayerId(layer)) {
        uses_of_block.emplace_back(result.uses.size());
        uses.push_back(uses_of_block.back());
        result.uses.push_back({LayerId(layer), BlockId(block)});
      }
      places.push_back({uses_of_block.back(), tensor});
    }
  }
  for (auto& block : result.blocks) {
    block.sums_gradient = !block.frozen && (sums_gradients || block.uses.size() > 1);
    block.sum_type = sum_type;
  }
  return result;
}

ROUNDPIPE_INLINE void shard_blocks(ParameterBlocks& blocks,
                                   std::size_t rank,
                                   std::span<double const> shares,
                                   std::function<bool(BlockTensor)> const& is_whole) {
  auto const all = std::accumulate(shares.begin(), shares.end(), 0.0);
  double elements = 0;                       // of the blocks so far
  std::vector<double> given(shares.size());  // of these, by rank
  for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
    auto& block = blocks.blocks[b];
    if (!block.frozen) {
      block.rank = rank;
      auto const of_shard = [&](BlockShard const& shard) {
        std::size_t size = 0;
        for (std::size_t t = 0; t < block.specs.size(); ++t) {
          size += shard.of_tensor(t, block.master[t].shape.size()).size();
        }
        return static_cast<double>(size);
      };
      elements += of_shard({{}, {block.specs.size(), 0}});
      auto due = given;
      for (std::size_t r = 0; r < due.size(); ++r) {  // rounded, so that all machines agree
        due[r] = std::max(0.0, std::ceil(elements * shares[r] / all) - given[r]);
      }
      auto const is_empty = std::ranges::all_of(due, [](double size) { return size == 0; });
      block.shards =
          cut_block(block.master, is_empty ? shares : std::span(due), [&](std::size_t t) {
            return is_whole && is_whole(BlockTensor{BlockId(b), t});
          });
      for (std::size_t r = 0; r < given.size(); ++r) {
        given[r] += of_shard(block.shards[r]);
      }
    }
  }
}

ROUNDPIPE_INLINE void require_state_type(ParameterBlocks const& blocks, StateType type) {
  for (auto const& block : blocks.blocks) {
    for (auto const& spec : block.master) {
      require(type == StateType::fp32 || block.frozen || spec.dtype != DType::f16,
              Errc::invalid_argument,
              "f16 parameters need fp32 weights beside them: they cannot hold small updates");
    }
  }
}

}  // namespace roundpipe
