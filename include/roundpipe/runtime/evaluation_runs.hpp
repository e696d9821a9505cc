// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs evaluations: their graphs and slots, one for each number of micro-batches.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/verify.hpp>
#include <roundpipe/memory/place_check.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/runtime/batch_feed.hpp>
#include <roundpipe/runtime/evaluation.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/run_slots.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>

namespace roundpipe {

/// What all evaluations have in common, with staging for a round of \p shaped, the model at its
/// capacity, in memory from \p take. \p plan must outlive it.
[[nodiscard]] CallData evaluation_call(PipelinePlan const& plan,
                                       PipelineOptions const& options,
                                       ShapedModel const& shaped,
                                       TakeHostMemory const& take);

/// The program of an evaluation of \p micro_batches micro-batches, for a pipeline of \p plan whose
/// master copies \p flush brings up to date.
/// \throws Error (unsafe_graph) when options want that and a policy leaves an order to chance.
template <class Planner>
[[nodiscard]] GraphProgram plan_evaluation(Planner const& planner,
                                           PipelinePlan const& plan,
                                           ActionGraph const& flush,
                                           PipelineOptions const& options,
                                           std::size_t micro_batches) {
  auto graph =
      planner.evaluation_graph(plan.blocks, plan.stages, plan_options(options), micro_batches);
  if (options.verify) {
    auto const sequence = training_sequence(
        {plan.graph, plan.step, flush, graph, std::min<std::size_t>(options.calls_per_step, 2)},
        options.devices);
    require_safe(sequence);
    require_apart(sequence, plan.stages.memory, [&](ActionGraph const& each) {
      return std::span<StageLayout const>(&each == &graph ? plan.stages.evaluate
                                                          : plan.stages.train);
    });
  }
  return GraphProgram(std::move(graph), action_names(plan));
}

/// Evaluates batches of any number of micro-batches. Evaluations do not overlap, so all share one
/// staging.
template <Backend B>
class EvaluationRuns {
 public:
  /// Makes the program of an evaluation of so many micro-batches, at most a round's.
  using MakeProgram = std::function<GraphProgram(std::size_t)>;
  /// Waits for a run's losses and adds them to a sum, see \ref RunSlots::wait_for_loss.
  using AddLoss = std::function<double(RunSlot<B> const&, double)>;

  /// \p slots must outlive this, and this the executor. \p common: see \ref evaluation_call.
  EvaluationRuns(RunSlots<B>& slots, CallData common, MakeProgram make_program)
      : slots_(slots), common_(std::move(common)), make_program_(std::move(make_program)) {}

  /// Evaluates \p batch a round at a time, with the weights that \p posted says.
  template <class Model>
  [[nodiscard]] Evaluation run(BatchFeed<Model>& feed,
                               Batch const& batch,
                               SlicedBatch const& sliced,
                               PostedWork const& posted,
                               AddLoss const& add_loss) {
    Evaluation evaluation;
    evaluation.step = posted.visible_step;
    auto const most = common_.micro_batches_per_round;
    for (std::size_t first = 0; first < batch.size(); first += most) {
      auto const count = std::min(most, batch.size() - first);
      auto& slot = slot_of(count);
      slots_.begin(slot, posted, common_);
      feed.stage(batch, sliced, first, count, slot.data());
      slot.data().gradient_scale = sliced.gradient_scale;
      slots_.post(slot);
      evaluation.loss = add_loss(slot, evaluation.loss);
      add_results(slot.data(), evaluation);
    }
    return evaluation;
  }

 private:
  struct Made {
    std::unique_ptr<GraphProgram> program;
    RunSlot<B> slot;
  };

  [[nodiscard]] RunSlot<B>& slot_of(std::size_t micro_batches) {
    if (auto const found = made_.find(micro_batches); found != made_.end()) {
      return found->second.slot;
    }
    Made made;
    made.program = std::make_unique<GraphProgram>(make_program_(micro_batches));
    made.slot = slots_.make(*made.program, common_.stages);
    return made_.emplace(micro_batches, std::move(made)).first->second.slot;
  }

  static void add_results(CallData const& call, Evaluation& evaluation) {
    for (std::size_t m = 0; m < call.shapes.size(); ++m) {
      auto const& table = call.shapes[m]->model.layers.back().results;
      auto const bytes = call.results[m].first(table.bytes());
      evaluation.tables.push_back(table);
      evaluation.results.emplace_back(bytes.begin(), bytes.end());
    }
  }

  RunSlots<B>& slots_;
  CallData common_;
  MakeProgram make_program_;
  std::map<std::size_t, Made> made_;  // by number of micro-batches
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/evaluation_runs.ipp>
#endif
