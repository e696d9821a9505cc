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
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/optim/clipping.hpp>
#include <roundpipe/optim/update_pass.hpp>
#include <roundpipe/runtime/state/gradient_scaler.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>
#include <roundpipe/runtime/state/initialize.hpp>
#include <roundpipe/runtime/state/rounding_key.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

/// All blocks in host memory. Members are called in the order that the graphs' edges keep, those of
/// one lane by one thread.
template <Backend B, Optimizer O>
class ParameterStore {
 public:
  struct Options {
    std::size_t master_copies = 1;
    std::size_t gradient_buffers = 1;
    bool copies_parameters = false;  ///< Whether P copies, not updates, write master copies.
    StateType state_type = StateType::fp32;
    GradientScalerOptions verdict{};
    std::uint64_t seed = 0;
    std::size_t threads = 1;  ///< Of each lane of the host.
    UsableCpus cpus{};        ///< What they are pinned to, if to any.
  };

  /// Takes memory from \p arena and sets first values. \p blocks must outlive the store.
  /// \throws Error (invalid_argument) for f16 parameters without fp32 weights, (unsupported) for
  ///         more states than \ref max_update_states.
  ParameterStore(ParameterBlocks const& blocks, O optimizer, Options options, HostArena<B>& arena)
      : blocks_(blocks),
        optimizer_(std::move(optimizer)),
        options_(options),
        update_pool_(options.threads, options.cpus),
        copy_pool_(options.copies_parameters ? options.threads : 1, options.cpus),
        sum_pool_(sums_any(blocks) ? options.threads : 1, options.cpus),
        scaler_(blocks, options.verdict) {
    require_state_type(blocks, options.state_type);
    require(optimizer_.state_arrays() <= max_update_states,
            Errc::unsupported,
            "an optimizer has at most 8 state arrays");
    std::size_t largest = 0;
    for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
      take_memory(blocks.blocks[b], arena);
      place_shards(BlockId(b));
      set_first_values(BlockId(b));
      trained_ += blocks.blocks[b].frozen ? 0 : 1;
      for (auto const& spec : blocks.blocks[b].master) {
        largest = std::max(largest, spec.shape.size());
      }
    }
    norm_sums_.resize(options.verdict.measures() ? norm_blocks(largest) : 0);
    for (auto const& use : blocks.uses) {
      auto const& block = blocks.blocks[use.block.index()];
      landings_.push_back(block.sums_gradient ? arena.take(block.master.bytes()) : HostBytes{});
    }
  }

  [[nodiscard]] ParameterBlocks const& blocks() const noexcept { return blocks_; }

  /// A block as uploads that read the weights of step \p version find it.
  [[nodiscard]] HostBytes master(BlockId block, std::uint64_t version) const {
    auto const& copies = memory_[block.index()].masters;
    return copies[version % copies.size()];
  }
  /// Where downloads leave a use's gradient in \p iteration: where the optimizer reads it, unless
  /// it is to be added to a sum.
  [[nodiscard]] HostBytes landing(BlockUseId use, std::uint64_t iteration) const {
    return blocks_.block_of(use).sums_gradient ? landings_[use.index()]
                                               : gradient(blocks_.use(use).block, iteration);
  }

  /// Calls `f(values)` with the newest weights of a tensor as fp32, which live until \p f returns.
  template <class F>
  void with_weights(BlockId block, std::size_t tensor, F&& f) const {
    auto const from = weights(block, tensor);
    if (from.dtype == DType::f32) {
      f(HostSpan<float const>(reinterpret_cast<float const*>(from.data), from.size));
      return;
    }
    std::vector<float> values(from.size);
    widen(from.bytes(), from.dtype, values, false);
    f(HostSpan<float const>(values));
  }
  /// Replaces a tensor's weights from element \p first on, in all copies. Nothing else is under
  /// way.
  void write_weights(BlockId block,
                     std::size_t tensor,
                     HostSpan<float const> values,
                     std::size_t first = 0) {
    auto const write = [&](HostArray const& to) {
      narrow(values, to.dtype, to.part(first, first + values.size()).bytes());
    };
    if (has_optimizer_copy(block)) {
      write(weights(block, tensor));
    }
    for (auto const& copy : memory_[block.index()].masters) {
      write(array(blocks_.blocks[block.index()].master, tensor, copy));
    }
  }

  /// Adds what has landed for \p use to its block's gradient sum, or begins the sum with it.
  void accumulate(BlockUseId use, bool begins, std::uint64_t iteration) {
    auto const block = blocks_.use(use).block;
    auto const& table = blocks_.blocks[block.index()].master;
    for (std::size_t t = 0; t < table.size(); ++t) {
      auto const sum = gradient_of(block, t, iteration);
      auto const landed = array(table, t, landings_[use.index()]);
      sum_pool_.for_each_part(sum.size, grain, [&](std::size_t begin, std::size_t end) {
        widen(landed.part(begin, end).bytes(),
              landed.dtype,
              {reinterpret_cast<float*>(sum.data) + begin, end - begin},
              !begins);
      });
    }
  }

  /// Measures the block's part of the global norm.
  void measure_gradient(BlockId block, std::uint64_t step) {
    double sum = 0;
    for (std::size_t t = 0; t < tensors(block); ++t) {
      auto const gradient = gradient_of(block, t, step);
      HostSpan<double> const sums(norm_sums_.data(), norm_blocks(gradient.size));
      update_pool_.for_each_part(gradient.size, grain, [&](std::size_t begin, std::size_t end) {
        sum_squares_by_block(gradient.part(begin, end),
                             sums.subspan(begin / norm_block_size, norm_blocks(end - begin)));
      });
      sum += sum_in_order(sums);
    }
    scaler_.add(block, step, sum);
  }

  /// Step \p step (from 1) of a block: what updates the optimizer copy, and unless P copies do,
  /// writes the master copy. \p loss_scale made the gradients. A step whose gradients overflowed
  /// leaves the weights as they are.
  /// \throws Error (not_finite) when the norm is not finite and there is no loss scale to blame.
  void update(BlockId block, std::uint64_t step, double loss_scale) {
    auto const factor = scaler_.factor(step, loss_scale);
    is_torn_.store(true, std::memory_order_release);
    for (std::size_t t = 0; t < tensors(block); ++t) {
      update_tensor(block, t, step, factor);
    }
    if (++updated_ == trained_) {
      updated_ = 0;
      is_torn_.store(false, std::memory_order_release);
      skipped_steps_.fetch_add(factor.skips ? 1 : 0, std::memory_order_acq_rel);
      finished_steps_.store(step, std::memory_order_release);
    }
  }

  /// P copy: the only master copy becomes the optimizer copy, rounded.
  void copy_parameters(BlockId block) {
    std::lock_guard const lock(copies_);
    auto const& table = blocks_.blocks[block.index()].master;
    for (std::size_t t = 0; t < table.size(); ++t) {
      UpdateArrays const arrays{
          weights(block, t), {}, {}, array(table, t, memory_[block.index()].masters.front())};
      copy_pool_.for_each_part(arrays.weights.size, grain, [&](std::size_t begin, std::size_t end) {
        copy_pass(part_of(arrays, {}, begin, end));
      });
    }
  }

  /// The number of the last step that has updated every block.
  [[nodiscard]] std::uint64_t finished_steps() const noexcept {
    return finished_steps_.load(std::memory_order_acquire);
  }
  /// How many of them were skipped, for their gradients had overflowed.
  [[nodiscard]] std::uint64_t skipped_steps() const noexcept {
    return skipped_steps_.load(std::memory_order_acquire);
  }
  /// Whether a step is under way: when an error has stopped it there, the weights are of no step.
  [[nodiscard]] bool is_torn() const noexcept { return is_torn_.load(std::memory_order_acquire); }
  /// Whether there is anything to update.
  [[nodiscard]] bool trains() const noexcept { return trained_ > 0; }
  /// Held while a P copy runs, which an error leaves beside a step that is finished all the same.
  [[nodiscard]] std::mutex& copies() noexcept { return copies_; }
  /// Whether step \p step, one of the last two that were measured, has overflowed.
  [[nodiscard]] bool has_overflowed(std::uint64_t step) const {
    return scaler_.has_overflowed(step);
  }

 private:
  static constexpr std::size_t grain = 1U << 14U;  // elements

  using States = std::array<HostArray, max_update_states>;

  struct Memory {
    std::vector<HostBytes> masters;
    HostBytes weights;  // the optimizer's own, if it has them
    std::vector<HostBytes> states;
    std::vector<HostBytes> gradients;
  };

  [[nodiscard]] bool has_optimizer_copy(BlockId block) const {
    return options_.state_type == StateType::fp32 && !blocks_.blocks[block.index()].frozen;
  }
  [[nodiscard]] TensorTable const& state_table(ParameterBlock const& block) const {
    return options_.state_type == StateType::fp32 ? block.gradient : block.master;
  }

  [[nodiscard]] static bool sums_any(ParameterBlocks const& blocks) {
    return std::any_of(blocks.blocks.begin(), blocks.blocks.end(), [](auto const& block) {
      return block.sums_gradient;
    });
  }

  void take_memory(ParameterBlock const& block, HostArena<B>& arena) {
    auto& memory = memory_.emplace_back();
    for (std::size_t i = 0; i < (block.frozen ? 1 : options_.master_copies); ++i) {
      memory.masters.push_back(arena.take(block.master.bytes()));
    }
    if (block.frozen) {
      return;
    }
    if (options_.state_type == StateType::fp32) {
      memory.weights = arena.take(block.gradient.bytes());
    }
    for (std::size_t s = 0; s < optimizer_.state_arrays(); ++s) {
      memory.states.push_back(arena.take(state_table(block).bytes()));
    }
    for (std::size_t i = 0; i < options_.gradient_buffers; ++i) {
      memory.gradients.push_back(arena.take(block.host_gradient().bytes()));
    }
  }

  /// Moves what the optimizer's threads work on to where they run.
  void place_shards(BlockId block) {
    auto const& described = blocks_.blocks[block.index()];
    auto const& memory = memory_[block.index()];
    auto const place = [&](TensorTable const& table, HostBytes bytes) {
      for (std::size_t t = 0; !bytes.empty() && t < table.size(); ++t) {
        update_pool_.place_shards(part(table, t, bytes), size_of(table[t].dtype), grain);
      }
    };
    place(described.gradient, memory.weights);
    for (auto const& master : memory.masters) {
      place(described.master, master);
    }
    for (auto const& state : memory.states) {
      place(state_table(described), state);
    }
    for (auto const& gradient : memory.gradients) {
      place(described.host_gradient(), gradient);
    }
  }

  void set_first_values(BlockId block) {
    auto const& specs = blocks_.blocks[block.index()].specs;
    for (std::size_t t = 0; t < specs.size(); ++t) {
      auto const size = specs[t].tensor.shape.size();
      update_pool_.for_each_part(size, grain, [&](std::size_t begin, std::size_t end) {
        std::array<float, 4096> values;
        for (auto first = begin; first < end; first += values.size()) {
          HostSpan<float> const some(values.data(), std::min(values.size(), end - first));
          initialize(specs[t], options_.seed, block.index(), t, some, first);
          write_weights(block, t, some, first);
        }
      });
    }
  }

  [[nodiscard]] std::size_t tensors(BlockId block) const {
    return blocks_.blocks[block.index()].specs.size();
  }
  [[nodiscard]] HostBytes gradient(BlockId block, std::uint64_t iteration) const {
    auto const& buffers = memory_[block.index()].gradients;
    return buffers[iteration % buffers.size()];
  }
  [[nodiscard]] HostArray gradient_of(BlockId block, std::size_t t, std::uint64_t iteration) const {
    return array(blocks_.blocks[block.index()].host_gradient(), t, gradient(block, iteration));
  }

  [[nodiscard]] static HostBytes part(TensorTable const& table, std::size_t t, HostBytes memory) {
    return memory.subspan(table.offset(t), table[t].bytes());
  }
  [[nodiscard]] static HostArray array(TensorTable const& table, std::size_t t, HostBytes memory) {
    return {part(table, t, memory).data(), table[t].shape.size(), table[t].dtype};
  }

  /// The newest weights of a tensor: the optimizer copy, or the master copy of the last step.
  [[nodiscard]] HostArray weights(BlockId block, std::size_t t) const {
    return weights_before(block, t, finished_steps() + 1);
  }
  /// What step \p step begins with.
  [[nodiscard]] HostArray weights_before(BlockId block, std::size_t t, std::uint64_t step) const {
    auto const& described = blocks_.blocks[block.index()];
    return has_optimizer_copy(block) ? array(described.gradient, t, memory_[block.index()].weights)
                                     : array(described.master, t, master(block, step - 1));
  }

  void update_tensor(BlockId block, std::size_t t, std::uint64_t step, StepFactor factor) {
    auto const& described = blocks_.blocks[block.index()];
    auto const& memory = memory_[block.index()];
    States states;
    for (std::size_t s = 0; s < memory.states.size(); ++s) {
      states[s] = array(state_table(described), t, memory.states[s]);
    }
    UpdateArrays const arrays{
        weights_before(block, t, step),
        gradient_of(block, t, step),
        {},
        options_.copies_parameters ? HostArray{} : array(described.master, t, master(block, step))};
    UpdateContext const context{step, factor.gradient, described.specs[t].decay};
    auto const key = rounding_key(options_.seed, step, block, t);
    update_pool_.for_each_part(arrays.weights.size, grain, [&](std::size_t begin, std::size_t end) {
      States parts;
      for (std::size_t s = 0; s < memory.states.size(); ++s) {
        parts[s] = states[s].part(begin, end);
      }
      auto shard = part_of(arrays, {parts.data(), memory.states.size()}, begin, end);
      if (!factor.skips && is_own_f32_copy(block, shard)) {
        copy_pass(shard);  // f32 is updated in place, and uploads may still read the old copy
        shard.weights = shard.master;
      }
      if (!factor.skips) {
        update_pass(optimizer_, context, shard, key, begin);
      } else if (shard.master.present()) {
        copy_pass(shard);
      }
    });
  }

  /// Whether the weights are f32 in one master copy and go to the other.
  [[nodiscard]] bool is_own_f32_copy(BlockId block, UpdateArrays const& arrays) const {
    return !has_optimizer_copy(block) && arrays.weights.dtype == DType::f32 &&
           arrays.weights.data != arrays.master.data;
  }

  [[nodiscard]] static UpdateArrays part_of(UpdateArrays const& arrays,
                                            std::span<HostArray const> states,
                                            std::size_t begin,
                                            std::size_t end) {
    auto const cut = [&](HostArray const& array) {
      return array.present() ? array.part(begin, end) : array;
    };
    return {cut(arrays.weights), cut(arrays.gradient), states, cut(arrays.master)};
  }

  ParameterBlocks const& blocks_;
  O optimizer_;
  Options options_;
  WorkerPool update_pool_;
  WorkerPool copy_pool_;
  WorkerPool sum_pool_;
  GradientScaler scaler_;
  std::vector<Memory> memory_;
  std::vector<HostBytes> landings_;  // by use; empty where gradients land in their place
  std::vector<double> norm_sums_;    // of one tensor's gradient, by norm block
  std::size_t trained_ = 0;          // blocks
  std::size_t updated_ = 0;          // blocks of the step under way
  std::atomic<bool> is_torn_{false};
  std::mutex copies_;
  std::atomic<std::uint64_t> finished_steps_{0};
  std::atomic<std::uint64_t> skipped_steps_{0};
};

}  // namespace roundpipe
