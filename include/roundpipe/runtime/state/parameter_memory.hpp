// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The host's copies of all parameters, gradients and optimizer states: memory and
/// addresses.

#include <roundpipe/config.hpp>
#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/memory/landing_rings.hpp>
#include <roundpipe/model/block_shards.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/runtime/state/block_readers.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace roundpipe {

/// Calls `f(values)` with the elements of \p array as fp32, which live until \p f returns.
template <class F>
void with_floats(HostArray const& array, F&& f) {
  if (array.dtype == DType::f32) {
    f(HostSpan<float const>(reinterpret_cast<float const*>(array.data), array.size));
    return;
  }
  std::vector<float> values(array.size);
  widen(array.bytes(), array.dtype, values, false);
  f(HostSpan<float const>(values));
}

/// Threads share the host's work on a tensor in parts of multiples of so many elements.
inline constexpr std::size_t host_work_grain = std::size_t{1} << 14U;

/// What \ref ParameterMemory holds of every block.
struct ParameterCopies {
  std::size_t master_copies = 1;
  std::size_t gradient_buffers = 1;
  std::size_t state_arrays = 0;  ///< Of the optimizer.
  StateType state_type = StateType::fp32;
};

/// All blocks in host memory. Whoever reads or writes keeps the order of the graphs' edges.
///
/// Where ranks share blocks (\ref shard_blocks), each has whole master copies, and of sums,
/// optimizer copy and states its own shard: the arrays of these are a tensor's elements \ref own.
///
/// Versions count steps: version 0 of the weights are the first values, version T is what step T
/// left.
///
/// Somebody outside the graphs may read weights and states while the training goes on (\ref
/// BlockReaders): whoever is about to overwrite those of a block waits for `readers()` first.
class ParameterMemory {
 public:
  /// Takes memory with \p take, which owns it. \p blocks must outlive this. Gradients that are
  /// summed land in \p landings.
  /// \throws Error (invalid_argument) for f16 parameters without fp32 weights.
  ParameterMemory(ParameterBlocks const& blocks,
                  ParameterCopies copies,
                  LandingRings landings,
                  TakeHostMemory const& take);
  ParameterMemory(ParameterMemory const&) = delete;
  ParameterMemory& operator=(ParameterMemory const&) = delete;
  /// Waits for all readers, for the memory may go next.
  ~ParameterMemory() { readers_->wait_for_all(); }

  [[nodiscard]] ParameterBlocks const& blocks() const noexcept { return blocks_; }
  [[nodiscard]] std::shared_ptr<BlockReaders> const& readers() const noexcept { return readers_; }
  [[nodiscard]] std::size_t tensors(BlockId block) const { return described(block).specs.size(); }
  [[nodiscard]] std::size_t state_arrays() const noexcept { return copies_.state_arrays; }
  [[nodiscard]] StateType state_type() const noexcept { return copies_.state_type; }
  /// Whether the optimizer has weights of its own beside the master copy.
  [[nodiscard]] bool has_optimizer_copy(BlockId block) const;

  /// A block as uploads that read the weights of \p version find it.
  [[nodiscard]] HostBytes master(BlockId block, std::uint64_t version) const;
  /// Where downloads leave a use's gradient of \p round in \p iteration: where the optimizer reads
  /// it, unless it is to be added to a sum.
  [[nodiscard]] HostBytes landing(BlockUseId use, RoundId round, std::uint64_t iteration) const;

  /// Tensor \p t of the master copy that holds \p version.
  [[nodiscard]] HostArray master(BlockId block, std::size_t t, std::uint64_t version) const;
  /// The elements of tensor \p t that this rank keeps and updates.
  [[nodiscard]] ElementRange own(BlockId block, std::size_t t) const {
    return described(block).own().of_tensor(t, described(block).master[t].shape.size());
  }
  /// The same part of tensor \p t of the master copy that holds \p version.
  [[nodiscard]] HostArray own_master(BlockId block, std::size_t t, std::uint64_t version) const {
    auto const [begin, end] = own(block, t);
    return master(block, t, version).part(begin, end);
  }
  /// The own part of tensor \p t of a gradient of \p block, whose own shard \p bytes holds as
  /// devices send it.
  [[nodiscard]] HostArray sent(BlockId block, std::size_t t, HostBytes bytes) const {
    return own_array(block, described(block).master, t, bytes);
  }
  /// Tensor \p t of the gradient that the optimizer reads in step \p iteration.
  [[nodiscard]] HostArray gradient(BlockId block, std::size_t t, std::uint64_t iteration) const;
  /// Optimizer state \p s of tensor \p t.
  [[nodiscard]] HostArray state(BlockId block, std::size_t t, std::size_t s) const;
  /// The most exact weights of \p version: the optimizer copy, which must be there yet, or the
  /// master copy's own part.
  [[nodiscard]] HostArray weights(BlockId block, std::size_t t, std::uint64_t version) const;

  /// All that holds weights of tensor \p t: every master copy, behind the optimizer copy, if there
  /// is one.
  [[nodiscard]] std::vector<HostArray> copies(BlockId block, std::size_t t) const;
  [[nodiscard]] std::vector<HostArray> masters(BlockId block, std::size_t t) const;

  /// Calls `f(values)` with \ref weights as fp32, which live until \p f returns.
  template <class F>
  void with_weights(BlockId block, std::size_t t, std::uint64_t version, F&& f) const {
    with_floats(weights(block, t, version), f);
  }
  /// Replaces a tensor's weights from element \p first on, in all copies. Waits for readers; call
  /// this while nothing else uses the block.
  void write_weights(BlockId block,
                     std::size_t t,
                     HostSpan<float const> values,
                     std::size_t first = 0) const;

  /// Calls \p f with every array that updates of \p block work on.
  template <class F>
  void for_each_updated_array(BlockId block, F&& f) const {
    auto const& memory = memory_[block.index()];
    auto const all_of = [&](TensorTable const& table, HostBytes bytes) {
      for (std::size_t t = 0; !bytes.empty() && t < table.size(); ++t) {
        f(own_array(block, table, t, bytes));
      }
    };
    all_of(described(block).gradient, memory.weights);
    for (std::size_t copy = 0; copy < memory.masters.size(); ++copy) {
      for (std::size_t t = 0; t < tensors(block); ++t) {
        f(own_master(block, t, copy));
      }
    }
    for (auto const& state : memory.states) {
      all_of(state_table(block), state);
    }
    for (auto const& gradient : memory.gradients) {
      all_of(described(block).host_gradient(), gradient);
    }
  }

 private:
  struct Memory {
    std::vector<HostBytes> masters;
    HostBytes weights;  // the optimizer's own, if it has them
    std::vector<HostBytes> states;
    std::vector<HostBytes> gradients;
  };

  void take_memory(ParameterBlock const& block, TakeHostMemory const& take);

  [[nodiscard]] ParameterBlock const& described(BlockId block) const;
  [[nodiscard]] TensorTable const& state_table(BlockId block) const;
  [[nodiscard]] HostBytes gradient(BlockId block, std::uint64_t iteration) const;
  [[nodiscard]] static HostArray array(TensorTable const& table, std::size_t t, HostBytes memory) {
    auto const bytes = memory.subspan(table.offset(t), table[t].bytes());
    return {bytes.data(), table[t].shape.size(), table[t].dtype};
  }
  /// The own part of tensor \p t of \p table in \p shard, the memory of the own shard.
  [[nodiscard]] HostArray own_array(BlockId block,
                                    TensorTable const& table,
                                    std::size_t t,
                                    HostBytes shard) const {
    auto const offset = described(block).own().offset(t, table);
    return {shard.data() + offset, own(block, t).size(), table[t].dtype};
  }

  ParameterBlocks const& blocks_;
  ParameterCopies copies_;
  std::vector<Memory> memory_;  // by block
  LandingRings rings_;
  std::vector<HostBytes> landings_;  // by ring
  std::shared_ptr<BlockReaders> readers_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/parameter_memory.ipp>
#endif
