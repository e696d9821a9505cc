// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The host's memory: its rings, and the ledger of all of it.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/memory/landing_rings.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

/// What the host holds besides the rings.
struct HostNeeds {
  std::size_t state_arrays = 0;  ///< Of the optimizer.
  StateType state_type = StateType::fp32;
  std::size_t master_copies = 1;
  std::size_t gradient_buffers = 1;
  std::size_t micro_batches_per_round = 1;  ///< M_R
  std::size_t rounds = 1;                   ///< R
  std::size_t devices = 1;                  ///< N
  std::size_t ranks = 1;                    ///< H: processes that train together.
  std::size_t calls_in_flight = 2;          ///< Each holds a copy of its batch.
  Bytes update_scratch = 0;                 ///< Where whole parameters are widened for updates.
  Bytes finite_check = 0;                   ///< Where values are read that must be finite.
};

/// The plan of the host's memory.
struct HostMemoryPlan {
  HostRings rings;
  LandingRings landings;
  WorkingSet working_set;
  std::vector<LedgerLine> ledger;
  /// Master copies, optimizer copies, states, gradients and their sums: what every parameter costs.
  Bytes state_bytes = 0;
};

/// The bytes that one of \p ranks ranks needs for the gradients of any block of \p blocks that come
/// from the others: of its own shard, for all uses; 0 for one rank.
[[nodiscard]] Bytes received_gradient_bytes(ParameterBlocks const& blocks, std::size_t ranks);

/// Plans what the host holds for \p stages, of whose boundaries some are \p resident.
[[nodiscard]] HostMemoryPlan plan_host_memory(ModelDescription const& model,
                                              ParameterBlocks const& blocks,
                                              BatchLayout const& batch,
                                              std::span<StageLayout const> stages,
                                              HostNeeds const& needs,
                                              ResidentBoundaries const& resident = {});

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/host_memory_plan.ipp>
#endif
