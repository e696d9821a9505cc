// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief All graphs of a training of a toy model, and the sequences that a user may issue.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/plan/planner.hpp>
#include <support/toy_model.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// The model of a training and its sizes.
struct Training {
  ToyModelOptions model;
  PlanOptions plan{.device_memory = 1_GiB};
  StepOptions step;
  std::size_t calls = 1;      ///< In an iteration.
  std::size_t evaluated = 0;  ///< Micro-batches in an evaluation; 0: as many as in a round.
  bool shards = false;        ///< Whether ranks share blocks; the graphs are those of rank 1.
};

struct TrainingGraphs {
  std::size_t devices = 1;
  ParameterBlocks blocks;
  StagePlan stages;
  ActionGraph call;
  ActionGraph evaluation;
  ActionGraph step;
  ActionGraph flush;

  [[nodiscard]] ActionGraph& of(GraphRole role) noexcept {
    switch (role) {
      case GraphRole::call:
        return call;
      case GraphRole::evaluation:
        return evaluation;
      case GraphRole::step:
        return step;
      default:
        return flush;
    }
  }
  [[nodiscard]] ActionGraph const& of(GraphRole role) const noexcept {
    return const_cast<TrainingGraphs&>(*this).of(role);
  }
};

inline constexpr GraphRole all_graph_roles[] = {
    GraphRole::call, GraphRole::evaluation, GraphRole::step, GraphRole::flush};

/// \throws Error (over_budget) as `Planner::plan_stages` does.
template <Schedule S, TransferPolicy T, EventProtocol E, PartitionPolicy P>
TrainingGraphs plan_training(
    Training const& training, S schedule, T transfers, E protocol, P partitioner) {
  auto const model = describe(toy_model(training.model), {2, 3});
  TrainingGraphs graphs;
  graphs.devices = training.plan.devices;
  graphs.blocks =
      form_blocks(model, training.plan.rounds > 1 || training.calls > 1 || training.plan.ranks > 1);
  if (training.shards) {
    shard_blocks(graphs.blocks, 1, std::vector(training.plan.ranks, 1.0));
  }
  std::vector<LayerCost> const costs(model.size(), LayerCost{1, 2});
  Planner const planner{
      std::move(schedule), std::move(transfers), std::move(protocol), std::move(partitioner)};
  graphs.stages = planner.plan_stages(model, graphs.blocks, CostModel(costs), training.plan);
  graphs.call = planner.streamed_graph(graphs.blocks, graphs.stages, training.plan);
  graphs.evaluation = planner.evaluation_graph(
      graphs.blocks,
      graphs.stages,
      training.plan,
      training.evaluated > 0 ? training.evaluated : training.plan.micro_batches_per_round);
  graphs.step = planner.step_graph(graphs.blocks, training.step);
  graphs.flush = planner.flush_graph(graphs.blocks);
  return graphs;
}

/// The smallest device memory for which \p training has a plan.
template <Schedule S, TransferPolicy T, EventProtocol E, PartitionPolicy P>
Bytes smallest_device_memory(Training training,
                             S const& schedule,
                             T const& transfers,
                             E const& protocol,
                             P const& partitioner) {
  auto const fits = [&](Bytes bytes) {
    training.plan.device_memory = bytes;
    try {
      plan_training(training, schedule, transfers, protocol, partitioner);
      return true;
    } catch (Error const& error) {
      require(error.code() == Errc::over_budget, Errc::invalid_argument, error.what());
      return false;
    }
  };
  Bytes low = 0;
  Bytes high = tensor_alignment_bytes;
  while (!fits(high)) {
    low = std::exchange(high, 2 * high);
  }
  while (high - low > tensor_alignment_bytes) {
    auto const middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

/// The issues of a pipeline, one after another. An evaluation follows a flush and a
/// synchronization.
enum class Issue : std::uint8_t { call, step, flush, synchronize, evaluation };

/// \p iterations iterations of \p calls calls and a step; with \p evaluates, two evaluations before
/// the last two iterations.
inline std::vector<Issue> issue_iterations(std::size_t iterations,
                                           std::size_t calls,
                                           bool evaluates) {
  std::vector<Issue> issues;
  for (std::size_t t = 1; t <= iterations; ++t) {
    if (evaluates && t + 1 == iterations) {
      using enum Issue;
      issues.insert(issues.end(), {flush, synchronize, evaluation, evaluation});
    }
    issues.insert(issues.end(), calls, Issue::call);
    issues.push_back(Issue::step);
  }
  return issues;
}

/// \p issues with the graphs of \p even in iterations 2, 4, …, and of \p odd in 1, 3, …; both must
/// outlive the sequence.
inline GraphSequence sequence_of(TrainingGraphs const& odd,
                                 TrainingGraphs const& even,
                                 std::span<Issue const> issues) {
  GraphSequence sequence(odd.devices);
  std::size_t iteration = 1;
  for (auto const issue : issues) {
    auto const& graphs = iteration % 2 == 0 ? even : odd;
    switch (issue) {
      case Issue::call:
        sequence.add(graphs.call);
        break;
      case Issue::step:
        sequence.add(graphs.step);
        ++iteration;
        break;
      case Issue::flush:
        sequence.add(graphs.flush);
        break;
      case Issue::synchronize:
        sequence.synchronize();
        break;
      case Issue::evaluation:
        sequence.add(graphs.evaluation);
        break;
    }
  }
  return sequence;
}
inline GraphSequence sequence_of(TrainingGraphs const& graphs, std::span<Issue const> issues) {
  return sequence_of(graphs, graphs, issues);
}

}  // namespace roundpipe::test
