// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The host's memory: which boundaries are kept there, and the ledger of all of it.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/plan/batch_layout.hpp>
#include <roundpipe/plan/call_graph.hpp>
#include <roundpipe/plan/memory_plan.hpp>
#include <roundpipe/plan/model_description.hpp>
#include <roundpipe/plan/parameter_blocks.hpp>
#include <roundpipe/plan/stage_layout.hpp>

#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace roundpipe {

/// What the host holds besides the boundaries.
struct HostNeeds {
  std::size_t state_arrays = 0;      ///< Of the optimizer.
  bool copies_gradients = false;     ///< G copies.
  std::size_t micro_batches = 1;     ///< M_R
  std::size_t rounds = 1;            ///< R
  std::size_t calls_in_flight = 2;   ///< Each holds a copy of its batch.
};

/// The plan of the host's memory.
struct HostMemoryPlan {
  /// Bytes of a micro-batch's boundary (or its gradient), by the layer that made it.
  std::map<std::size_t, Bytes> checkpoints;
  std::map<std::size_t, Bytes> boundary_gradients;
  std::vector<LedgerLine> ledger;
};

/// Plans what the host holds for \p stages.
[[nodiscard]] inline HostMemoryPlan plan_host_memory(ModelDescription const& model,
                                                     ParameterBlocks const& blocks,
                                                     BatchLayout const& batch,
                                                     std::span<StageLayout const> stages,
                                                     HostNeeds const& needs) {
  HostMemoryPlan plan;
  for (auto const& stage : stages) {
    for (auto const& kept : stage.kept) {
      plan.checkpoints[kept.boundary] = kept.place.bytes;
    }
    if (stage.has_backward() && stage.range.first > 0) {
      plan.boundary_gradients[stage.range.first - 1] = stage.layers.front().input_gradient.bytes;
    }
  }
  Bytes master = 0;
  Bytes wide = 0;
  Bytes landings = 0;
  for (auto const& block : blocks.blocks) {
    master += block.master.bytes();
    wide += block.gradient.bytes();
    landings += block.master.bytes() * block.uses.size();
  }
  auto const rings = [&](std::map<std::size_t, Bytes> const& boundaries) {
    Bytes bytes = 0;
    for (auto const& [boundary, entry] : boundaries) {
      bytes += align_up(entry) * needs.micro_batches * host_ring_entries;
    }
    return bytes;
  };
  auto const add = [&](char const* name, Bytes bytes) {
    plan.ledger.push_back({LedgerLine::Space::host, name, bytes});
  };
  add("master copies", master);
  add("optimizer copies and states", wide * (1 + needs.state_arrays));
  add("gradient sums", wide);
  add("gradient copies", needs.copies_gradients ? wide : 0);
  add("gradient landings", landings);
  add("checkpoints", rings(plan.checkpoints));
  add("boundary gradients", rings(plan.boundary_gradients));
  auto const micro_batches = needs.micro_batches * needs.rounds;
  add("batches",
      batch.tensors.bytes() * needs.micro_batches * (needs.rounds * needs.calls_in_flight + 1));
  add("losses and results",
      align_up(sizeof(double)) * (micro_batches * needs.calls_in_flight + needs.micro_batches) +
          model.layers.back().results.bytes() * needs.micro_batches);
  return plan;
}

}  // namespace roundpipe
