// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/memory/landing_rings.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/runtime/state/block_readers.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE ParameterMemory::ParameterMemory(ParameterBlocks const& blocks,
                                                  ParameterCopies copies,
                                                  LandingRings landings,
                                                  TakeHostMemory const& take)
    : blocks_(blocks),
      copies_(copies),
      rings_(std::move(landings)),
      readers_(std::make_shared<BlockReaders>(blocks.blocks.size())) {
  require_state_type(blocks, copies.state_type);
  for (auto const& block : blocks.blocks) {
    take_memory(block, take);
  }
  for (auto const bytes : rings_.entry_bytes()) {
    landings_.push_back(take(bytes));
  }
}

ROUNDPIPE_INLINE bool ParameterMemory::has_optimizer_copy(BlockId block) const {
  return copies_.state_type == StateType::fp32 && !described(block).frozen;
}

ROUNDPIPE_INLINE HostBytes ParameterMemory::master(BlockId block, std::uint64_t version) const {
  auto const& masters = memory_[block.index()].masters;
  return masters[version % masters.size()];
}

ROUNDPIPE_INLINE HostBytes ParameterMemory::landing(BlockUseId use,
                                                    RoundId round,
                                                    std::uint64_t iteration) const {
  return blocks_.block_of(use).sums_gradient ? landings_[rings_.index(use, round)]
                                             : gradient(blocks_.use(use).block, iteration);
}

ROUNDPIPE_INLINE HostArray ParameterMemory::master(BlockId block,
                                                   std::size_t t,
                                                   std::uint64_t version) const {
  return array(described(block).master, t, master(block, version));
}

ROUNDPIPE_INLINE HostArray ParameterMemory::gradient(BlockId block,
                                                     std::size_t t,
                                                     std::uint64_t iteration) const {
  return own_array(block, described(block).host_gradient(), t, gradient(block, iteration));
}

ROUNDPIPE_INLINE HostArray ParameterMemory::state(BlockId block,
                                                  std::size_t t,
                                                  std::size_t s) const {
  return own_array(block, state_table(block), t, memory_[block.index()].states[s]);
}

ROUNDPIPE_INLINE HostArray ParameterMemory::weights(BlockId block,
                                                    std::size_t t,
                                                    std::uint64_t version) const {
  return has_optimizer_copy(block)
             ? own_array(block, described(block).gradient, t, memory_[block.index()].weights)
             : own_master(block, t, version);
}

ROUNDPIPE_INLINE std::vector<HostArray> ParameterMemory::copies(BlockId block,
                                                                std::size_t t) const {
  auto result = masters(block, t);
  if (has_optimizer_copy(block)) {
    result.insert(result.begin(), weights(block, t, 0));
  }
  return result;
}

ROUNDPIPE_INLINE std::vector<HostArray> ParameterMemory::masters(BlockId block,
                                                                 std::size_t t) const {
  std::vector<HostArray> result;
  for (std::size_t copy = 0; copy < memory_[block.index()].masters.size(); ++copy) {
    result.push_back(master(block, t, copy));
  }
  return result;
}

ROUNDPIPE_INLINE void ParameterMemory::write_weights(BlockId block,
                                                     std::size_t t,
                                                     HostSpan<float const> values,
                                                     std::size_t first) const {
  readers_->wait(block);
  for (auto const& to : masters(block, t)) {
    narrow(values, to.dtype, to.part(first, first + values.size()).bytes());
  }
  auto const kept = own(block, t);
  auto const begin = std::max(kept.begin, first);
  auto const end = std::min(kept.end, first + values.size());
  if (has_optimizer_copy(block) && begin < end) {
    auto const to = weights(block, t, 0).part(begin - kept.begin, end - kept.begin);
    narrow(values.subspan(begin - first, end - begin), to.dtype, to.bytes());
  }
}

ROUNDPIPE_INLINE void ParameterMemory::take_memory(ParameterBlock const& block,
                                                   TakeHostMemory const& take) {
  auto& memory = memory_.emplace_back();
  BlockId const id(memory_.size() - 1);
  for (std::size_t i = 0; i < (block.frozen ? 1 : copies_.master_copies); ++i) {
    memory.masters.push_back(take(block.master.bytes()));
  }
  if (block.frozen) {
    return;
  }
  auto const take_own = [&](TensorTable const& table) {
    return take(block.own().bytes(table).size());
  };
  if (has_optimizer_copy(id)) {
    memory.weights = take_own(block.gradient);
  }
  for (std::size_t s = 0; s < copies_.state_arrays; ++s) {
    memory.states.push_back(take_own(state_table(id)));
  }
  for (std::size_t i = 0; i < copies_.gradient_buffers; ++i) {
    memory.gradients.push_back(take_own(block.host_gradient()));
  }
}

ROUNDPIPE_INLINE ParameterBlock const& ParameterMemory::described(BlockId block) const {
  return blocks_.blocks[block.index()];
}

ROUNDPIPE_INLINE TensorTable const& ParameterMemory::state_table(BlockId block) const {
  return copies_.state_type == StateType::fp32 ? described(block).gradient
                                               : described(block).master;
}

ROUNDPIPE_INLINE HostBytes ParameterMemory::gradient(BlockId block, std::uint64_t iteration) const {
  auto const& buffers = memory_[block.index()].gradients;
  return buffers[iteration % buffers.size()];
}

}  // namespace roundpipe
