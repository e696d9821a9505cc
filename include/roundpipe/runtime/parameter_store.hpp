// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The host's copies of all parameters, gradients and optimizer states, and what the host's
/// lanes do with them.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/clipping.hpp>
#include <roundpipe/plan/parameter_blocks.hpp>
#include <roundpipe/runtime/host_arena.hpp>
#include <roundpipe/runtime/initialize.hpp>
#include <roundpipe/runtime/worker_pool.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// All blocks in host memory. Members are called in the order that the graphs' edges keep.
template <Backend B, Optimizer O>
class ParameterStore {
 public:
  struct Options {
    bool copies_gradients = false;  ///< Whether the optimizer works on G copies.
    double clip_norm = 0;           ///< Largest global norm of a step's gradient; 0: no clipping.
    std::uint64_t seed = 0;
    std::size_t threads = 1;        ///< Of the optimizer's worker.
  };

  /// Takes memory from \p arena and sets first values. \p blocks must outlive the store.
  ParameterStore(ParameterBlocks const& blocks, O optimizer, Options options, HostArena<B>& arena)
      : blocks_(blocks),
        optimizer_(std::move(optimizer)),
        options_(options),
        pool_(options.threads),
        squares_(blocks.blocks.size()) {
    for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
      auto const& block = blocks.blocks[b];
      auto const wide = block.gradient.bytes();
      Memory memory{arena.take(block.master.bytes()), arena.take(wide), {}, arena.take(wide), {}};
      memory.gradient_copy = options.copies_gradients ? arena.take(wide) : memory.gradient;
      for (std::size_t s = 0; s < optimizer_.state_arrays(); ++s) {
        memory.states.push_back(arena.take(wide));
      }
      memory_.push_back(std::move(memory));
      for (std::size_t t = 0; t < block.specs.size(); ++t) {
        initialize(block.specs[t], options.seed, b, t, weights(BlockId(b), t));
      }
      copy_parameters(BlockId(b));
    }
    for (auto const& use : blocks.uses) {
      landings_.push_back(arena.take(blocks.blocks[use.block.index()].master.bytes()));
    }
  }

  [[nodiscard]] ParameterBlocks const& blocks() const noexcept { return blocks_; }

  /// A block as uploads read it.
  [[nodiscard]] HostBytes master(BlockId block) const { return memory_[block.index()].master; }
  /// A use's rounded gradient, as downloads leave it.
  [[nodiscard]] HostBytes landing(std::size_t use) const { return landings_[use]; }
  /// A tensor of the optimizer copy.
  [[nodiscard]] HostSpan<float> weights(BlockId block, std::size_t tensor) const {
    return part(block, tensor, memory_[block.index()].weights);
  }

  /// Adds what has landed for \p use to its block's gradient sum, or begins the sum with it.
  void accumulate(std::size_t use, bool begins) {
    auto const block = blocks_.uses[use].block;
    auto const& table = blocks_.blocks[block.index()].master;
    for (std::size_t t = 0; t < table.size(); ++t) {
      widen(landings_[use].subspan(table.offset(t), table[t].bytes()),
            table[t].dtype,
            part(block, t, memory_[block.index()].gradient),
            !begins);
    }
  }

  /// G copy.
  void copy_gradient(BlockId block) {
    auto const& memory = memory_[block.index()];
    std::copy(memory.gradient.begin(), memory.gradient.end(), memory.gradient_copy.begin());
  }

  /// Prepares the block's part of the global norm.
  void measure_gradient(BlockId block) {
    double sum = 0;
    for (std::size_t t = 0; t < tensors(block); ++t) {
      sum += sum_of_squares(part(block, t, memory_[block.index()].gradient_copy));
    }
    squares_[block.index()] = sum;
  }

  /// The update number \p step (from 1) of a block.
  /// \throws Error (not_finite) when the global norm is none.
  void update(BlockId block, std::uint64_t step) {
    auto const& memory = memory_[block.index()];
    UpdateContext context{step, gradient_factor(step), DecayGroup::decayed};
    for (std::size_t t = 0; t < tensors(block); ++t) {
      context.decay = blocks_.blocks[block.index()].specs[t].decay;
      auto const weights = part(block, t, memory.weights);
      auto const gradient = part(block, t, memory.gradient_copy);
      pool_.for_each_part(weights.size(), grain, [&](std::size_t begin, std::size_t end) {
        std::vector<HostSpan<float>> states;
        for (auto const& state : memory.states) {
          states.push_back(part(block, t, state).subspan(begin, end - begin));
        }
        optimizer_.update(context,
                          weights.subspan(begin, end - begin),
                          gradient.subspan(begin, end - begin),
                          states);
      });
    }
    if (++updated_ == blocks_.blocks.size()) {
      updated_ = 0;
      finished_steps_ = step;
    }
  }

  /// The number of the last step that has updated every block.
  [[nodiscard]] std::uint64_t finished_steps() const noexcept { return finished_steps_; }

  /// P copy.
  void copy_parameters(BlockId block) {
    auto const& memory = memory_[block.index()];
    auto const& table = blocks_.blocks[block.index()].master;
    for (std::size_t t = 0; t < table.size(); ++t) {
      narrow(part(block, t, memory.weights),
             table[t].dtype,
             memory.master.subspan(table.offset(t), table[t].bytes()));
    }
  }

 private:
  static constexpr std::size_t grain = 1U << 14U;  // elements

  struct Memory {
    HostBytes master;
    HostBytes weights;
    std::vector<HostBytes> states;
    HostBytes gradient;
    HostBytes gradient_copy;  // the gradient itself when there are no G copies
  };

  [[nodiscard]] std::size_t tensors(BlockId block) const {
    return blocks_.blocks[block.index()].specs.size();
  }

  /// Tensor \p t of a block in the accumulation type.
  [[nodiscard]] HostSpan<float> part(BlockId block, std::size_t t, HostBytes memory) const {
    auto const& table = blocks_.blocks[block.index()].gradient;
    return {reinterpret_cast<float*>(memory.data() + table.offset(t)), table[t].shape.size()};
  }

  [[nodiscard]] float gradient_factor(std::uint64_t step) const {
    if (options_.clip_norm <= 0) {
      return 1;
    }
    double sum = 0;
    for (auto const square : squares_) {
      sum += square;
    }
    auto const norm = std::sqrt(sum);
    if (!std::isfinite(norm)) {
      throw Error(Errc::not_finite,
                  "the gradient's norm at step " + std::to_string(step) + " is not finite");
    }
    return static_cast<float>(clip_factor(norm, options_.clip_norm));
  }

  ParameterBlocks const& blocks_;
  O optimizer_;
  Options options_;
  WorkerPool pool_;
  std::vector<Memory> memory_;
  std::vector<HostBytes> landings_;
  std::vector<double> squares_;   // by block
  std::size_t updated_ = 0;       // blocks of the step under way
  std::uint64_t finished_steps_ = 0;
};

}  // namespace roundpipe
