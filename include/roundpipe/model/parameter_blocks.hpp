// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The parameters of a model as blocks: one for each layer's own tensors that are trained,
/// one for those that are frozen, one for each tensor that layers share.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/block_shards.hpp>
#include <roundpipe/model/model_description.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe {

/// In which type the host keeps weights, states and sums of gradients between steps.
enum class StateType : std::uint8_t {
  fp32,      ///< The optimizer's own weights, states and sums in fp32; the master copy is the
             ///< weights, rounded.
  declared,  ///< States and sums in the parameter's type, and no weights but the master copy; bf16
             ///< is rounded stochastically.
};

/// Parameters that are uploaded, updated and ordered as one.
struct ParameterBlock {
  std::vector<ParameterSpec> specs;
  TensorTable master;    ///< As declared: the master copy, and a slot's rounded gradient.
  TensorTable gradient;  ///< The same tensors in the accumulation type.
  TensorTable rounded;   ///< Those of \c master in another type: gradients are rounded.
  /// By tensor: its index in \c rounded, if it is there.
  std::vector<std::optional<std::size_t>> rounded_tensors;
  std::vector<BlockUseId> uses;  ///< In layer order.
  bool frozen = false;           ///< Never updated: no gradient, no optimizer state.
  /// Whether an iteration's gradient is a sum over uses, rounds or calls.
  bool sums_gradient = false;
  StateType sum_type = StateType::fp32;  ///< Of such a sum.
  std::size_t rank = 0;                  ///< Of this process among those that train together.
  /// By rank: what it keeps and updates. Empty: every rank all. See \ref shard_blocks.
  std::vector<BlockShard> shards{};

  /// What \p of_rank keeps of sums, optimizer copy and states, and updates.
  [[nodiscard]] BlockShard shard(std::size_t of_rank) const {
    return shards.empty() ? BlockShard{{}, {specs.size(), 0}} : shards[of_rank];
  }
  /// The same of this process.
  [[nodiscard]] BlockShard own() const { return shard(rank); }
  [[nodiscard]] bool is_sharded() const noexcept { return !shards.empty(); }

  /// The gradient as the host keeps it and the optimizer reads it.
  [[nodiscard]] TensorTable const& host_gradient() const noexcept {
    return sums_gradient && sum_type == StateType::fp32 ? gradient : master;
  }
};

/// A layer's use of a block.
struct BlockUse {
  LayerId layer;
  BlockId block;
};

/// Where a layer's parameter lies: in which of the layer's uses, as which tensor of its block.
struct ParameterPlace {
  BlockUseId use;          ///< One of the layer's.
  std::size_t tensor = 0;  ///< Index into the block's tables.
};

/// A tensor of a block.
struct BlockTensor {
  BlockId block;
  std::size_t tensor = 0;  ///< Index into the block's tables.
};

/// All blocks of a model, and who uses them.
struct ParameterBlocks {
  std::vector<ParameterBlock> blocks;               ///< In order of their first use.
  std::vector<BlockUse> uses;                       ///< By \ref BlockUseId, in layer order.
  std::vector<std::vector<BlockUseId>> layer_uses;  ///< By layer.
  std::vector<std::vector<ParameterPlace>> places;  ///< By layer, by parameter.

  [[nodiscard]] BlockUse const& use(BlockUseId id) const { return uses[id.index()]; }
  [[nodiscard]] bool trains(BlockUseId use) const { return !block_of(use).frozen; }

  [[nodiscard]] ParameterBlock const& block_of(BlockUseId use) const;
  /// The number of parameters: elements of all blocks, shared ones counted once.
  [[nodiscard]] std::size_t parameter_count() const;

  /// The name of a parameter: the number of the first layer that has it, a dot, and what that layer
  /// calls it, such as "1.self_attn.q_proj.weight". No two are equal.
  [[nodiscard]] std::string name_of(BlockTensor parameter) const;
  /// The same of parameter \p index of \p layer.
  /// \throws Error (invalid_argument) when there is no such parameter.
  [[nodiscard]] std::string name_of(LayerId layer, std::size_t index) const;
  /// What an optimizer may know of \p parameter, for as long as \p name, its name, lives.
  [[nodiscard]] ParameterInfo info_of(BlockTensor parameter, std::string_view name) const;
  /// The parameter of that name. \throws Error (invalid_argument) when there is none.
  [[nodiscard]] BlockTensor find(std::string_view name) const;

  /// Calls `f(parameter)` with each parameter, a \ref BlockTensor, shared ones once.
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      for (std::size_t t = 0; t < blocks[b].specs.size(); ++t) {
        f(BlockTensor{BlockId(b), t});
      }
    }
  }
  [[nodiscard]] TensorSpec const& tensor(BlockTensor parameter) const {
    return blocks[parameter.block.index()].specs[parameter.tensor].tensor;
  }
};

/// Forms the blocks of \p model. \p sums_gradients says that an iteration has several rounds or
/// calls, so that all gradients are sums. Sums are of type \p sum_type.
/// \throws Error (invalid_argument) when a parameter is no f32, bf16 or f16 tensor, or when tensors
///         that share a key differ in shape, type, or in being frozen.
[[nodiscard]] ParameterBlocks form_blocks(ModelDescription const& model,
                                          bool sums_gradients = false,
                                          StateType sum_type = StateType::fp32);

/// Lets each rank, of which this process is \p rank, keep and update a shard of each trained block
/// of \p blocks alone. What it has of all blocks together follows the \p shares of the ranks (see
/// \ref cut_block): a later block makes up for what the cuts of the blocks before have given one
/// too much. A parameter for which \p is_whole is true belongs to one rank.
void shard_blocks(ParameterBlocks& blocks,
                  std::size_t rank,
                  std::span<double const> shares,
                  std::function<bool(BlockTensor)> const& is_whole = {});

/// \throws Error (invalid_argument) when \p type cannot hold what \p blocks train: f16 parameters
///         cannot hold small updates, and need fp32 weights beside them.
void require_state_type(ParameterBlocks const& blocks, StateType type);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/parameter_blocks.ipp>
#endif
