// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The host's memory: which boundaries are kept there, and the ledger of all of it.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

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
inline void require_state_type(ParameterBlocks const& blocks, StateType type) {
  for (auto const& block : blocks.blocks) {
    for (auto const& spec : block.master) {
      require(type == StateType::fp32 || block.frozen || spec.dtype != DType::f16,
              Errc::invalid_argument,
              "f16 parameters need fp32 weights beside them: they cannot hold small updates");
    }
  }
}

/// How many rounds' boundaries the host holds: one is written while the round before is read.
inline constexpr std::size_t host_ring_entries = 2;

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
  std::vector<LedgerLine> ledger;
  /// Master copies, optimizer copies, states and gradients: what every parameter costs. Staging for
  /// sums is not among it.
  Bytes state_bytes = 0;
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
  auto const rings = [&](std::map<std::size_t, Bytes> const& boundaries) {
    Bytes bytes = 0;
    for (auto const& [boundary, entry] : boundaries) {
      bytes += align_up(entry) * needs.micro_batches_per_round * host_ring_entries;
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
  add("checkpoints", rings(plan.checkpoints));
  add("boundary gradients", rings(plan.boundary_gradients));
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
