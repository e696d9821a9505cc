// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/memory/landing_rings.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace roundpipe {

ROUNDPIPE_INLINE Bytes received_gradient_bytes(ParameterBlocks const& blocks, std::size_t ranks) {
  Bytes most = 0;
  for (auto const& block : blocks.blocks) {
    if (!block.frozen) {
      auto const own = block.own().bytes(block.master).size();
      most = std::max(most, (ranks - 1) * block.uses.size() * own);
    }
  }
  return most;
}

ROUNDPIPE_INLINE HostMemoryPlan plan_host_memory(ModelDescription const& model,
                                                 ParameterBlocks const& blocks,
                                                 BatchLayout const& batch,
                                                 std::span<StageLayout const> stages,
                                                 HostNeeds const& needs,
                                                 ResidentBoundaries const& resident) {
  HostMemoryPlan plan;
  plan.rings = HostRings(stages, needs.micro_batches_per_round, needs.rounds, resident);
  plan.landings = LandingRings(blocks, stages, needs.devices, needs.rounds);
  plan.working_set = stages.front().working_set;
  Bytes masters = 0;
  Bytes states = 0;
  Bytes gradients = 0;
  for (auto const& block : blocks.blocks) {
    if (block.frozen) {
      masters += block.master.bytes();
      continue;
    }
    masters += block.master.bytes() * needs.master_copies;
    auto const own = block.own();
    auto const declared = own.bytes(block.master).size();
    auto const wide = own.bytes(block.gradient).size();
    states += needs.state_type == StateType::fp32 ? wide * (1 + needs.state_arrays)
                                                  : declared * needs.state_arrays;
    gradients += own.bytes(block.host_gradient()).size() * needs.gradient_buffers;
  }
  auto const add = [&](char const* name, Bytes bytes) {
    plan.ledger.push_back({LedgerLine::Space::host, name, bytes});
  };
  add("master copies", masters);
  add("optimizer copies and states", states);
  add("gradients", gradients);
  if (auto const landings = plan.landings.bytes(); landings > 0) {
    add("landings of gradients", landings);
  }
  if (auto const bytes = received_gradient_bytes(blocks, needs.ranks); bytes > 0) {
    add("gradients of other ranks", align_up(bytes));
  }
  if (needs.update_scratch > 0) {
    add("parameters updated as a whole", needs.update_scratch);
  }
  if (needs.finite_check > 0) {
    add("values that must be finite", needs.finite_check);
  }
  plan.state_bytes = masters + states + gradients;
  add("checkpoints", plan.rings.bytes(BufferKind::checkpoint));
  add("boundary gradients", plan.rings.bytes(BufferKind::boundary_gradient));
  if (auto const saves = plan.rings.bytes(BufferKind::offloaded_saves); saves > 0) {
    add("offloaded saves", saves);
  }
  auto const micro_batches_per_call = needs.micro_batches_per_round * needs.rounds;
  add("batches",
      batch.tensors.bytes() * needs.micro_batches_per_round *
          (needs.rounds * needs.calls_in_flight + 1));
  add("losses and results",
      align_up(sizeof(double)) *
              (micro_batches_per_call * needs.calls_in_flight + needs.micro_batches_per_round) +
          model.layers.back().results.bytes() * needs.micro_batches_per_round);
  return plan;
}

}  // namespace roundpipe
