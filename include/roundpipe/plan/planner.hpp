// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Makes a plan: partition, memory and graphs, from a model, costs, a budget and policies.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_budget.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/plan/step_graph.hpp>
#include <roundpipe/plan/streamed_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// Makes plans with one set of policies.
template <Schedule S, TransferPolicy T, EventProtocol E, PartitionPolicy P>
class Planner {
 public:
  Planner(S schedule, T transfers, E protocol, P partitioner)
      : schedule_(std::move(schedule)),
        transfers_(std::move(transfers)),
        protocol_(std::move(protocol)),
        partitioner_(std::move(partitioner)) {}

  [[nodiscard]] S const& schedule() const noexcept { return schedule_; }
  [[nodiscard]] E const& protocol() const noexcept { return protocol_; }

  /// The time of an iteration by a plan.
  using Forecast = std::function<double(StagePlan const&)>;

  /// Partitions \p model so that it fits the budget. Each way of buffering has its best partition:
  /// with fewer entries, stages may be larger. \p forecast chooses between them; without it, the
  /// plan with most entries is taken.
  /// \throws Error (over_budget) when nothing fits; the message names the layer that needs most,
  ///         the bytes, and the smallest budget with which this planner finds a plan.
  [[nodiscard]] StagePlan plan_stages(ModelDescription const& model,
                                      ParameterBlocks const& blocks,
                                      CostModel const& costs,
                                      PlanOptions const& options,
                                      Forecast const& forecast = {}) const {
    require(options.devices > 0 && options.micro_batches_per_round > 0 && options.rounds > 0,
            Errc::invalid_argument,
            "devices, micro-batches and rounds are at least 1");
    StageBudget const sizes(model, blocks);
    if (auto plan =
            find_plan(model, blocks, sizes, costs, options, options.device_memory, forecast)) {
      return *std::move(plan);
    }
    auto const [layer, bytes] = sizes.largest_layer(buffering_modes().back());
    auto const held = options.held_memory;
    auto const smallest = smallest_budget(model, blocks, sizes, costs, options);
    throw Error(Errc::over_budget,
                "the device budget of " + std::to_string(options.device_memory) +
                    " bytes is too small: " +
                    (held > 0 ? "the process holds " + std::to_string(held) + " there already, "
                              : std::string()) +
                    model.name_of(layer) + " alone needs " + std::to_string(bytes) +
                    " bytes; the smallest budget that works is " + std::to_string(smallest) +
                    " bytes (" + format_bytes(smallest) + ")");
  }

  /// The graph of a training call.
  [[nodiscard]] ActionGraph streamed_graph(ParameterBlocks const& blocks,
                                           StagePlan const& plan,
                                           PlanOptions const& options) const {
    return build(GraphRole::call,
                 blocks,
                 plan.train,
                 {.forward_stages = plan.partition.forward.size(),
                  .backward_stages = plan.partition.backward.size(),
                  .devices = options.devices,
                  .micro_batches_per_round = options.micro_batches_per_round,
                  .rounds = options.rounds},
                 options.micro_batches_per_round,
                 plan.memory.buffering);
  }

  /// The graph of an evaluation of \p micro_batches micro-batches, at most a round's.
  [[nodiscard]] ActionGraph evaluation_graph(ParameterBlocks const& blocks,
                                             StagePlan const& plan,
                                             PlanOptions const& options,
                                             std::size_t micro_batches) const {
    return build(GraphRole::evaluation,
                 blocks,
                 plan.evaluate,
                 {.forward_stages = plan.evaluate.size(),
                  .backward_stages = 0,
                  .devices = options.devices,
                  .micro_batches_per_round = micro_batches,
                  .rounds = 1},
                 options.micro_batches_per_round,
                 plan.memory.buffering);
  }

  [[nodiscard]] ActionGraph step_graph(ParameterBlocks const& blocks, StepOptions options) const {
    return build_step_graph(blocks, protocol_, options);
  }
  [[nodiscard]] ActionGraph flush_graph(ParameterBlocks const& blocks) const {
    return build_flush_graph(blocks, protocol_);
  }

 private:
  [[nodiscard]] ActionGraph build(GraphRole role,
                                  ParameterBlocks const& blocks,
                                  std::vector<StageLayout> const& stages,
                                  ScheduleShape const& shape,
                                  std::size_t ring_stride,
                                  Buffering buffering) const {
    auto const tasks = schedule_.tasks(shape);
    auto graph = build_streamed_graph(
        {blocks,
         stages,
         shape,
         tasks,
         static_cast<std::size_t>(schedule_.advance(shape)),
         ring_stride,
         buffering,
         [&](std::span<Bytes const> tensors, std::size_t windows) {
           return transfers_.chunks(tensors, windows);
         },
         [&](BlockEvent event) { return protocol_.before(event, blocks.blocks.size()); }});
    set_role(graph, role, protocol_);
    return graph;
  }

  /// From the fastest to the most frugal.
  [[nodiscard]] std::vector<Buffering> buffering_modes() const {
    auto const depth = static_cast<std::size_t>(transfers_.activations_in_flight());
    return {{2, 2, depth}, {2, 1, depth}, {1, 1, depth}, {1, 1, 1}};
  }

  /// The plan for \p budget that \p forecast prefers; without it, the first, if there is one.
  [[nodiscard]] std::optional<StagePlan> find_plan(ModelDescription const& model,
                                                   ParameterBlocks const& blocks,
                                                   StageBudget const& sizes,
                                                   CostModel const& costs,
                                                   PlanOptions const& options,
                                                   Bytes budget,
                                                   Forecast const& forecast) const {
    std::optional<StagePlan> best;
    double best_s = 0;
    for (auto const& buffering : buffering_modes()) {
      auto found = try_buffering(model, blocks, sizes, costs, options, budget, buffering);
      if (!found || (best && best->partition == found->partition)) {
        continue;
      }
      if (!forecast) {
        return found;
      }
      auto const seconds = forecast(*found);
      if (!best || seconds < best_s) {
        best = std::move(found);
        best_s = seconds;
      }
    }
    return best;
  }

  [[nodiscard]] std::optional<StagePlan> try_buffering(ModelDescription const& model,
                                                       ParameterBlocks const& blocks,
                                                       StageBudget const& sizes,
                                                       CostModel const& costs,
                                                       PlanOptions const& options,
                                                       Bytes budget,
                                                       Buffering const& buffering) const {
    std::optional<StagePlan> found;
    auto limit = budget - std::min(budget, options.held_memory);
    auto longest_s = std::numeric_limits<double>::infinity();
    while (auto partition = try_partition(sizes, costs, options, buffering, limit, longest_s)) {
      auto plan = lay_out_stages(model, blocks, *std::move(partition), buffering);
      if (plan.memory.bytes + options.held_by(plan) > budget) {
        // Each ring is as large as its largest stage needs, so stages that fit one by one may not
        // fit together. A lower limit for one stage gives the next partition to try; none between
        // is left out, so that a larger budget never fails where a smaller one works.
        auto const lower = largest_stage(sizes, plan.partition, buffering) - 1;
        if (lower >= limit) {
          break;  // the policy does not heed limits
        }
        limit = lower;
        continue;
      }
      found = std::move(plan);
      if (found->partition.size() * options.rounds >= options.devices) {
        break;
      }
      // The objective takes devices to be busy from call to call; but a call with fewer slots
      // than devices leaves some idle, so its stages must become shorter.
      longest_s = slowest_stage_seconds(costs.layers(), found->partition);
    }
    return found;
  }

  /// Stages that need no more than \p limit bytes each and take less than \p longest_s.
  [[nodiscard]] std::optional<Partition> try_partition(StageBudget const& sizes,
                                                       CostModel const& costs,
                                                       PlanOptions const& options,
                                                       Buffering const& buffering,
                                                       Bytes limit,
                                                       double longest_s) const {
    PartitionProblem const problem{
        .costs = costs.layers(),
        .devices = options.devices,
        .micro_batches_per_call = options.micro_batches_per_round * options.rounds,
        .fits =
            [&](StageDirection direction, LayerRange range) {
              return sizes.bytes(direction, range, buffering) <= limit &&
                     stage_seconds(costs.layers(), direction, range) < longest_s;
            },
        .micro_batches_per_round = {options.micro_batches_per_round}};
    try {
      return partitioner_.partition(problem);
    } catch (Error const& error) {
      if (error.code() != Errc::over_budget) {
        throw;
      }
      return std::nullopt;
    }
  }

  /// What the stage needs that needs most.
  [[nodiscard]] static Bytes largest_stage(StageBudget const& sizes,
                                           Partition const& partition,
                                           Buffering const& buffering) {
    Bytes largest = 1;
    for (auto const& range : partition.forward) {
      largest = std::max(largest, sizes.bytes(StageDirection::forward, range, buffering));
    }
    for (auto const& range : partition.backward) {
      largest = std::max(largest, sizes.bytes(StageDirection::backward, range, buffering));
    }
    return largest;
  }

  /// By bisection over what \ref find_plan finds; all sizes are multiples of 256 bytes.
  [[nodiscard]] Bytes smallest_budget(ModelDescription const& model,
                                      ParameterBlocks const& blocks,
                                      StageBudget const& sizes,
                                      CostModel const& costs,
                                      PlanOptions const& options) const {
    auto const fits = [&](Bytes units) {
      auto const budget = units * tensor_alignment_bytes;
      return find_plan(model, blocks, sizes, costs, options, budget, {}).has_value();
    };
    auto low = options.device_memory / tensor_alignment_bytes;
    auto high = 2 * low + 1;
    while (!fits(high)) {
      low = high;
      high *= 2;
    }
    while (high - low > 1) {
      auto const middle = low + (high - low) / 2;
      (fits(middle) ? high : low) = middle;
    }
    return high * tensor_alignment_bytes;
  }

  S schedule_;
  T transfers_;
  E protocol_;
  P partitioner_;
};

}  // namespace roundpipe
