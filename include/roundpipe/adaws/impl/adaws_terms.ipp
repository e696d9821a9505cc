// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/adaws/adaws_problem.hpp>
#include <roundpipe/adaws/adaws_terms.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_plan.hpp>

#include <cstddef>

namespace roundpipe {

ROUNDPIPE_INLINE AdawsConfiguration adaws_terms(ModelDescription const& model,
                                                StagePlan const& plan,
                                                PlanOptions const& options) {
  require(options.devices == 1, Errc::unsupported, "AdaWS has terms for one device alone");
  Bytes kept = 0;
  Bytes all = 0;
  for (auto const& stage : plan.train) {
    if (stage.kind != StageKind::forward) {
      continue;
    }
    for (std::size_t round = 0; round < options.rounds; ++round) {
      auto const& set = stage.working_set.of_round(round);
      for (auto layer = stage.range.first; layer < stage.range.end(); ++layer) {
        for (std::size_t m = 0; m < options.micro_batches_per_round; ++m) {
          kept += set.bytes(layer, m);
          all += model.layers[layer].save_levels.back();
        }
      }
    }
  }
  auto const entries = [&](BufferKind kind) { return plan.memory.ring(kind).count; };
  return {.rounds = options.rounds,
          .chunks = options.micro_batches_per_round,
          .parameter_entries = entries(BufferKind::parameters),
          .save_entries = entries(BufferKind::saves),
          .gradient_entries = entries(BufferKind::gradients),
          .saved_share = all > 0 ? static_cast<double>(kept) / static_cast<double>(all) : 1};
}

}  // namespace roundpipe
