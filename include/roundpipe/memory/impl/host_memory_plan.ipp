// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/model/working_set.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>

namespace roundpipe {

ROUNDPIPE_INLINE void require_state_type(ParameterBlocks const& blocks, StateType type) {
  for (auto const& block : blocks.blocks) {
    for (auto const& spec : block.master) {
      require(type == StateType::fp32 || block.frozen || spec.dtype != DType::f16,
              Errc::invalid_argument,
              "f16 parameters need fp32 weights beside them: they cannot hold small updates");
    }
  }
}

namespace detail {

/// Adds what the host keeps of the layers of \p stage, if it keeps anything.
ROUNDPIPE_INLINE void add_saves(std::map<std::size_t, std::vector<Bytes>>& saves,
                                StageLayout const& stage,
                                std::size_t micro_batches_per_round) {
  for (auto layer = stage.range.first; layer < stage.range.end(); ++layer) {
    if (stage.working_set.most_bytes(layer) > 0) {
      for (std::size_t m = 0; m < micro_batches_per_round; ++m) {
        saves[layer].push_back(std::max(stage.working_set.bytes(layer, m),
                                        stage.working_set.of_round(0).bytes(layer, m)));
      }
    }
  }
}

}  // namespace detail

ROUNDPIPE_INLINE HostMemoryPlan plan_host_memory(ModelDescription const& model,
                                                 ParameterBlocks const& blocks,
                                                 BatchLayout const& batch,
                                                 std::span<StageLayout const> stages,
                                                 HostNeeds const& needs) {
  HostMemoryPlan plan;
  for (auto const& stage : stages) {
    for (auto const& kept : stage.kept) {
      plan.checkpoints[kept.boundary] = kept.place.bytes;
    }
    if (stage.kind == StageKind::forward) {
      plan.working_set = stage.working_set;
      detail::add_saves(plan.offloaded_saves, stage, needs.micro_batches_per_round);
    }
    auto const& gradient = stage.layers.front().input_gradient;
    if (gradient.area == Area::activations_out) {
      plan.boundary_gradients[stage.range.first - 1] = gradient.bytes;
    }
  }
  Bytes masters = 0;
  Bytes states = 0;
  Bytes gradients = 0;
  Bytes sums = 0;
  for (auto const& block : blocks.blocks) {
    auto const declared = block.master.bytes();
    auto const wide = block.gradient.bytes();
    if (block.frozen) {
      masters += declared;
      continue;
    }
    masters += declared * needs.master_copies;
    states += needs.state_type == StateType::fp32 ? wide * (1 + needs.state_arrays)
                                                  : declared * needs.state_arrays;
    if (block.sums_gradient) {  // each use has one landing
      gradients += declared;
      sums += wide * needs.gradient_buffers + declared * (block.uses.size() - 1);
    } else {
      gradients += declared * needs.gradient_buffers;
    }
  }
  auto const rings = [&](BufferKind kind, std::map<std::size_t, Bytes> const& entries) {
    Bytes bytes = 0;
    for (auto const& [layer, entry] : entries) {
      bytes += align_up(entry) * needs.micro_batches_per_round *
               host_ring_entries(kind, plan.working_set, layer);
    }
    return bytes;
  };
  auto const add = [&](char const* name, Bytes bytes) {
    plan.ledger.push_back({LedgerLine::Space::host, name, bytes});
  };
  add("master copies", masters);
  add("optimizer copies and states", states);
  add("gradients", gradients);
  add("gradient sums of rounds, calls, shared parameters", sums);
  plan.state_bytes = masters + states + gradients;
  add("checkpoints", rings(BufferKind::checkpoint, plan.checkpoints));
  add("boundary gradients", rings(BufferKind::boundary_gradient, plan.boundary_gradients));
  if (!plan.offloaded_saves.empty()) {
    Bytes saves = 0;
    for (auto const& [layer, entries] : plan.offloaded_saves) {
      for (auto const entry : entries) {
        saves += align_up(entry) *
                 host_ring_entries(BufferKind::offloaded_saves, plan.working_set, layer);
      }
    }
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
