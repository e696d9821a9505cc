// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The host's memory: which boundaries it keeps, and the ledger of all of it.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace roundpipe {

/// In which type the optimizer keeps weights and states between steps.
enum class StateType : std::uint8_t {
  fp32,      ///< Weights and states of its own in fp32; the master copy is the weights, rounded.
  declared,  ///< States in the parameter's type, and no weights but the master copy; bf16 is
             ///< rounded stochastically.
};

/// \throws Error (invalid_argument) when \p type cannot hold what \p blocks train: f16 parameters
///         cannot hold small updates, and need fp32 weights beside them.
void require_state_type(ParameterBlocks const& blocks, StateType type);

/// How many rounds' entries of \p kind the host holds of what \p layer makes. Of boundaries between
/// stages one round's are written while the round before is read. Where every boundary is a
/// checkpoint, and of saved activations, there are so many that each is written when it was read,
/// but for rounds that overlap.
[[nodiscard]] inline std::size_t host_ring_entries(BufferKind kind,
                                                   WorkingSet const& working_set,
                                                   std::size_t layer) noexcept {
  auto const is_large =
      kind == BufferKind::offloaded_saves ||
      (kind == BufferKind::checkpoint && working_set.checkpoints() == Checkpoints::layers);
  return is_large ? working_set.kept_rounds(layer) : 2;
}

/// What the host holds besides the boundaries.
struct HostNeeds {
  std::size_t state_arrays = 0;  ///< Of the optimizer.
  StateType state_type = StateType::fp32;
  std::size_t master_copies = 1;
  std::size_t gradient_buffers = 1;
  std::size_t micro_batches_per_round = 1;  ///< M_R
  std::size_t rounds = 1;                   ///< R
  std::size_t calls_in_flight = 2;          ///< Each holds a copy of its batch.
};

/// The plan of the host's memory.
struct HostMemoryPlan {
  /// Bytes of a micro-batch's boundary (or its gradient), by the layer that made it.
  std::map<std::size_t, Bytes> checkpoints;
  std::map<std::size_t, Bytes> boundary_gradients;
  /// What the host keeps of a layer's saves, by layer and micro-batch of a round.
  std::map<std::size_t, std::vector<Bytes>> offloaded_saves;
  WorkingSet working_set;
  std::vector<LedgerLine> ledger;
  /// Master copies, optimizer copies, states and gradients: what every parameter costs, without the
  /// staging for sums.
  Bytes state_bytes = 0;
};

/// Plans what the host holds for \p stages.
[[nodiscard]] HostMemoryPlan plan_host_memory(ModelDescription const& model,
                                              ParameterBlocks const& blocks,
                                              BatchLayout const& batch,
                                              std::span<StageLayout const> stages,
                                              HostNeeds const& needs);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/host_memory_plan.ipp>
#endif
