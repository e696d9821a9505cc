// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <train_throughput/plan_shares.hpp>

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/model/stage_passes.hpp>

namespace train_throughput {

namespace {

using roundpipe::PassKind;

double flops_of(roundpipe::Pass const& pass, roundpipe::FlopCount const& work) {
  if (pass.runs_backward()) {
    return work.backward_flops;
  }
  bool const is_replay = pass.kind == PassKind::recompute && !pass.hands_on_output();
  return is_replay && pass.level < work.replay_flops.size() ? work.replay_flops[pass.level]
                                                            : work.forward_flops;
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

PlanShares shares_of(roundpipe::ModelDescription const& model,
                     roundpipe::Partition const& partition,
                     roundpipe::WorkingSet const& working_set,
                     std::size_t micro_batches_per_round,
                     std::size_t rounds) {
  double flops = 0;
  double recomputed_flops = 0;
  double saved_bytes = 0;
  double kept_bytes = 0;
  for (auto const& stage : roundpipe::stages_of(partition)) {
    for (std::size_t i = 0; i < micro_batches_per_round * rounds; ++i) {
      auto const m = i % micro_batches_per_round;
      auto const& set = working_set.of_round(i / micro_batches_per_round);
      for (auto const& pass : passes_over(stage.kind, stage.range, set, m)) {
        auto const& layer = model.layers[pass.layer];
        auto const of_pass = flops_of(pass, layer.work);
        flops += of_pass;
        recomputed_flops += pass.kind == PassKind::recompute ? of_pass : 0;
        if (stage.kind == roundpipe::StageKind::backward && pass.runs_backward()) {
          saved_bytes += static_cast<double>(layer.footprint.saved_bytes);
          kept_bytes += static_cast<double>(set.bytes(pass.layer, m));
        }
      }
    }
  }
  return {ratio(recomputed_flops, flops), ratio(kept_bytes, saved_bytes)};
}

}  // namespace train_throughput
