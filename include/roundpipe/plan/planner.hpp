// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Makes a plan: partition, memory and graphs, from a model, costs, a budget and policies.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/memo.hpp>
#include <roundpipe/graph/protocol_check.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/memory/stage_region.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/partition/partition_check.hpp>
#include <roundpipe/plan/boundary_lives.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/residency_choice.hpp>
#include <roundpipe/plan/stage_chunks.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/plan/stage_search.hpp>
#include <roundpipe/plan/step_graph.hpp>
#include <roundpipe/plan/streamed_graph.hpp>
#include <roundpipe/schedule/schedule_check.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <tuple>
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

  /// Partitions \p model so that it fits the budget. Each way of buffering has its best partition:
  /// with fewer entries, stages may be larger. \p forecast chooses between them; without it, the
  /// plan with most entries is taken. Where \p options leave it open, \p forecast also chooses the
  /// checkpoints and save levels that the host keeps, and other stages where the policy yields.
  /// Where the host has room for no plan, returns the one that takes least of those that are tried.
  /// \throws OverBudget when nothing fits a device; the message names the layer that needs most,
  ///         the bytes, and, if \p options want that, the smallest budget with which this planner
  ///         finds a plan and what that holds, 1 MiB more where a device holds memory besides
  ///         plans, which differs a little from process to process; and where the policy answers
  ///         with a stage that does not fit, that stage and rule 1 of its concept;
  ///         (invalid_argument) for options that contradict each other, or that name save levels or
  ///         micro-batches that there are not, and where a policy breaks a rule of its concept; the
  ///         message names the answer and the rule. So do the graphs below.
  [[nodiscard]] StagePlan plan_stages(ModelDescription const& model,
                                      ParameterBlocks const& blocks,
                                      CostModel const& costs,
                                      PlanOptions const& options,
                                      PlanForecast const& forecast = {}) const {
    return find_stages(model, blocks, costs, options, forecast).plan;
  }

  /// \ref plan_stages, and what an iteration takes by that plan.
  [[nodiscard]] FoundPlan find_stages(ModelDescription const& model,
                                      ParameterBlocks const& blocks,
                                      CostModel const& costs,
                                      PlanOptions const& options,
                                      PlanForecast const& forecast = {}) const {
    require(options.devices > 0 && options.micro_batches_per_round > 0 && options.rounds > 0,
            Errc::invalid_argument,
            "devices, micro-batches and rounds are at least 1");
    require(options.reaches_peers || options.devices == 1 || options.peer_boundaries != true,
            Errc::unsupported,
            "boundaries cannot go from device to device: these devices do not reach each other");
    if (options.micro_batches_per_round > most_micro_batches ||
        options.rounds > most_micro_batches / options.micro_batches_per_round) {
      throw Error(Errc::invalid_argument,
                  std::to_string(options.rounds) + " rounds of " +
                      std::to_string(options.micro_batches_per_round) +
                      " micro-batches are more than the " + std::to_string(most_micro_batches) +
                      " that a call may have");
    }
    auto const partition = [&](PartitionProblem const& problem) {
      auto stages = partitioner_.partition(problem);
      check(stages, problem.costs.size());
      return stages;
    };
    using StageCounts = std::tuple<std::size_t, std::size_t, bool>;  // forward, backward; overlaps
    Memo<StageCounts, std::vector<Slot>> known_slots;
    auto const slots = [&](ScheduleShape const& shape) -> std::vector<Slot> const& {
      return known_slots({shape.forward_stages, shape.backward_stages, shape.overlaps_rounds},
                         [&] { return order_slots(shape, schedule_.tasks(shape)); });
    };
    Memo<StageCounts, std::vector<DeviceTurns>> known_turns;
    auto const turns_of_graphs = [&](Partition const& stages, bool overlaps) {
      auto parts =
          detail::turns_of(slots(training_shape(stages, overlaps, options)), options.devices);
      auto const& evaluating =
          slots(evaluation_shape(stages, options, options.micro_batches_per_round));
      for (auto& part : detail::turns_of(evaluating, options.devices, stages.size())) {
        parts.push_back(std::move(part));
      }
      return parts;
    };
    auto const turns = [&](Partition const& stages, bool overlaps) {
      return known_turns({stages.forward.size(), stages.backward.size(), overlaps}, [&] {
        try {
          return turns_of_graphs(stages, overlaps);
        } catch (Error const&) {
          // Who builds the graph hears what is wrong with its tasks. Till then, any order may come.
          return std::vector<DeviceTurns>();
        }
      });
    };
    auto const keep_resident = [&](PlanForecast const& seconds,
                                   FoundPlan found,
                                   detail::ResidencyTrial trial) {
      auto const otherwise = static_cast<bool>(seconds);
      if ((!options.lets_stay(otherwise) && !options.sends_to_peers(otherwise)) ||
          found.plan.train.size() == 1) {
        return found;
      }
      auto const& training = slots(training_shape(found.plan, options));
      auto const& evaluating =
          slots(evaluation_shape(found.plan.partition, options, options.micro_batches_per_round));
      return detail::keep_resident(std::move(found), training, evaluating, options, seconds, trial);
    };
    auto const keep_most = [&](StagePlan const& plan) {
      return keep_resident(
          forecast, {plan, forecast ? FoundPlan::unknown : 0}, detail::ResidencyTrial::forced);
    };
    // What stays on devices takes nothing of the host: one that has room for a plan so has room.
    auto limits = options;
    if (options.host_bytes) {
      limits.host_bytes = [&](StagePlan const& plan) {
        auto const bytes = options.host_bytes(plan);
        return bytes <= options.host_memory || !plan.resident.empty() || !plan.sent.empty()
                   ? bytes
                   : options.host_bytes(keep_most(plan).plan);
      };
    }
    auto const with_search = [&](PlanOptions const& sizes, auto const& use) {
      auto best_s = sizes.seconds_to_beat;
      auto const seconds = detail::without_losers(forecast, sizes, best_s);
      detail::StageFinder const finder(partition,
                                       turns,
                                       yields_to_forecast(partitioner_),
                                       activations_in_flight(transfers_),
                                       model,
                                       blocks,
                                       sizes,
                                       seconds);
      return use(detail::StageSearch(
          finder, model, blocks, costs, sizes, forecast, seconds, keep_resident));
    };
    auto const run = [](detail::StageSearch const& search) { return search.run(); };
    return with_search(limits, [&](detail::StageSearch const& search) {
      auto least = search.least_of_host();
      if (!limits.host_has_room(least)) {
        return keep_most(least);
      }
      if (forecast && options.host_bytes) {  // a limit must not lose a plan that it has room for
        auto sizes = options;
        sizes.host_bytes = {};
        auto found = with_search(sizes, run);
        if (options.host_has_room(found.plan)) {
          return found;
        }
      }
      return search.run();
    });
  }

  /// What a training call consists of.
  [[nodiscard]] static ScheduleShape training_shape(StagePlan const& plan,
                                                    PlanOptions const& options) {
    return training_shape(
        plan.partition, plan.train.front().working_set.overlaps_rounds(), options);
  }

  /// The bytes that stages of a training call of \p plan hand on to stages on other devices:
  /// through the host, so that they go down and up, wherever boundaries stay. 0 where devices reach
  /// each other.
  [[nodiscard]] Bytes handed_on(StagePlan const& plan, PlanOptions const& options) const {
    if (options.devices == 1 || options.reaches_peers) {
      return 0;
    }
    auto const shape = training_shape(plan, options);
    auto const slots = order_slots(shape, schedule_.tasks(shape));
    return options.micro_batches_per_round * detail::handed_on(plan.train, slots);
  }

  /// The graph of a training call.
  [[nodiscard]] ActionGraph streamed_graph(ParameterBlocks const& blocks,
                                           StagePlan const& plan,
                                           PlanOptions const& options) const {
    return build(GraphRole::call, blocks, plan.train, training_shape(plan, options), plan, options);
  }

  /// The graph of an evaluation of \p micro_batches micro-batches, at most a round's.
  [[nodiscard]] ActionGraph evaluation_graph(ParameterBlocks const& blocks,
                                             StagePlan const& plan,
                                             PlanOptions const& options,
                                             std::size_t micro_batches) const {
    return build(GraphRole::evaluation,
                 blocks,
                 plan.evaluate,
                 evaluation_shape(plan.partition, options, micro_batches),
                 plan,
                 options);
  }

  [[nodiscard]] ActionGraph step_graph(ParameterBlocks const& blocks, StepOptions options) const {
    return build_step_graph(blocks, protocol_, options);
  }
  [[nodiscard]] ActionGraph flush_graph(ParameterBlocks const& blocks) const {
    return build_flush_graph(blocks, protocol_);
  }

 private:
  [[nodiscard]] static ScheduleShape training_shape(Partition const& stages,
                                                    bool overlaps_rounds,
                                                    PlanOptions const& options) {
    return {.forward_stages = stages.forward.size(),
            .backward_stages = stages.backward.size(),
            .devices = options.devices,
            .micro_batches_per_round = options.micro_batches_per_round,
            .rounds = options.rounds,
            .overlaps_rounds = overlaps_rounds && !stages.forward.empty()};
  }
  [[nodiscard]] static ScheduleShape evaluation_shape(Partition const& stages,
                                                      PlanOptions const& options,
                                                      std::size_t micro_batches) {
    return {.forward_stages = stages.forward.size() + 1,
            .backward_stages = 0,
            .devices = options.devices,
            .micro_batches_per_round = micro_batches,
            .rounds = 1};
  }

  [[nodiscard]] ActionGraph build(GraphRole role,
                                  ParameterBlocks const& blocks,
                                  std::vector<StageLayout> const& stages,
                                  ScheduleShape const& shape,
                                  StagePlan const& plan,
                                  PlanOptions const& options) const {
    HostRings const rings(
        plan.train, options.micro_batches_per_round, options.rounds, plan.resident);
    auto const tasks = schedule_.tasks(shape);
    auto graph = build_streamed_graph(
        {blocks,
         stages,
         shape,
         tasks,
         advance_of(schedule_, shape),
         rings,
         plan.memory.buffering,
         [&](std::span<Bytes const> tensors, std::size_t windows) {
           return transfers_.chunks(tensors, windows);
         },
         [&](BlockEvent event) { return events_before(protocol_, event, blocks.blocks.size()); },
         options.deal(),
         plan.resident,
         plan.sent});
    set_role(graph, role, protocol_);
    return graph;
  }

  S schedule_;
  T transfers_;
  E protocol_;
  P partitioner_;
};

}  // namespace roundpipe
