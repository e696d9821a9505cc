// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "planning.hpp"

#include <roundpipe/graph/recompute_waits.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/model/byte_description.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/partition/balanced_partition.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/round_partition.hpp>
#include <roundpipe/partition/simulated_partitioner.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/plan/resident_graph.hpp>
#include <roundpipe/plan/step_graph.hpp>
#include <roundpipe/plan/streamed_graph.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/dualpipe_schedule.hpp>
#include <roundpipe/schedule/earliest_finish_schedule.hpp>
#include <roundpipe/schedule/gpipe_schedule.hpp>
#include <roundpipe/schedule/interleaved_schedule.hpp>
#include <roundpipe/schedule/looped_bfs_schedule.hpp>
#include <roundpipe/schedule/naive_schedule.hpp>
#include <roundpipe/schedule/one_f_one_b_schedule.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/schedule/zb_h1_schedule.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <roundpipe/simulate/stage_activity.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "byte_plan.hpp"
#include "warnings.hpp"

namespace plan_pipeline {

namespace rp = roundpipe;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The stages that the options list, if they do.
std::optional<rp::Partition> given_partition(Options const& o, std::size_t layers) {
  if (o.backward_stages.empty()) {
    return std::nullopt;
  }
  rp::Partition partition;
  std::size_t forwarded = 0;
  for (auto const count : o.forward_stages) {
    partition.forward.push_back({forwarded, count});
    forwarded += count;
  }
  auto left = layers;
  for (auto const count : o.backward_stages) {
    if (count > left) {
      left = layers + 1;  // the options list more layers than the model has
      break;
    }
    left -= count;
    partition.backward.push_back({left, count});
  }
  if (left != 0) {
    throw rp::Error(
        rp::Errc::invalid_argument,
        fmt::format("--backward-stages must cover the {} layers of the model, each once", layers));
  }
  auto const fused_first = layers - partition.backward.front().count;
  if (forwarded != fused_first && forwarded != layers) {
    throw rp::Error(rp::Errc::invalid_argument,
                    fmt::format("--forward-stages cover {} layers, but must cover the {} before "
                                "the fused stage, or without a fused stage all {}",
                                forwarded,
                                fused_first,
                                layers));
  }
  return partition;
}

/// One way to run a problem: stages on devices, as a graph.
class Planning {
 public:
  Planning(std::string const& name, Problem const& problem, Options const& o)
      : problem_(problem),
        o_(o),
        protocol_(o.asynchronous ? 1 : 0),
        given_(given_partition(o, problem.costs.size())) {
    outcome_.schedule = name;
    check_size();
    machine_.compute.layers = problem.costs;
    machine_.compute.device_speeds = o.device_speeds;
    for (auto const& cost : problem.costs) {
      machine_.compute.step_s.push_back(cost.optimizer_s);
    }
    machine_.link = problem.link;
    machine_.hand_over_s = problem.hand_over_s;
    machine_.dispatch_s = problem.dispatch_s;
  }

  /// Stages that any device may run; weights are streamed.
  template <class MakeSchedule>
  Outcome stream(MakeSchedule const& make_schedule) && {
    auto const begin = Clock::now();
    auto const plan = plan_bytes();
    outcome_.planning_s = seconds_since(begin);
    outcome_.partition = plan.partition;
    outcome_.shape = {.forward_stages = plan.partition.forward.size(),
                      .backward_stages = plan.partition.backward.size(),
                      .devices = o_.devices,
                      .micro_batches_per_round = plan.micro_batches_per_round,
                      .rounds = o_.micro_batches_per_call / plan.micro_batches_per_round,
                      .fused = true};
    auto const knows_bytes = std::ranges::any_of(
        problem_.bytes, [](rp::LayerBytes const& layer) { return layer != rp::LayerBytes{}; });
    outcome_.device_bytes.assign(o_.devices, knows_bytes ? plan.bytes : rp::DeviceUse{});
    outcome_.t_max_s = rp::slowest_stage_seconds(problem_.costs, plan.partition);
    auto const graph = streamed_graph(make_schedule(plan.partition), plan.buffering);
    return finish(graph);
  }

  /// \p stages stages that are bound to devices.
  template <rp::Schedule S>
  Outcome bind(S const& schedule, std::size_t stages) && {
    return std::move(*this).search(schedule, {stages});
  }

  /// The same for several numbers of stages: takes the one with the shortest call. Leaves out
  /// numbers that the schedule refuses, if it accepts any other.
  template <rp::Schedule S>
  Outcome search(S const& schedule, std::vector<std::size_t> candidates) && {
    auto const begin = Clock::now();
    outcome_.binds = true;
    auto best_s = std::numeric_limits<double>::infinity();
    std::optional<rp::Partition> best;
    for (std::size_t i = 0; i < candidates.size() && !given_; ++i) {
      auto partition = rp::balanced_partition({.costs = problem_.costs,
                                               .devices = o_.devices,
                                               .micro_batches_per_call = o_.micro_batches_per_call},
                                              candidates[i],
                                              rp::fuses(schedule));
      if (candidates.size() == 1) {
        best = std::move(partition);
        break;
      }
      try {
        auto const seconds = call_seconds(schedule, partition);
        if (seconds < best_s) {
          best_s = seconds;
          best = std::move(partition);
        }
      } catch (rp::Error const&) {
        if (!best && i + 1 == candidates.size()) {
          throw;
        }
      }
    }
    outcome_.partition = given_ ? *given_ : best.value();
    outcome_.planning_s = seconds_since(begin);
    outcome_.shape = bound_shape(outcome_.partition);
    for (auto const& [kind, range] : rp::stages_of(outcome_.partition)) {
      if (kind == rp::StageKind::forward) {
        continue;  // the backward stage of its place counts its time
      }
      double seconds = 0;
      for (auto const& cost : std::span(problem_.costs).subspan(range.first, range.count)) {
        seconds += rp::place_seconds(cost, kind == rp::StageKind::fused);
      }
      outcome_.t_max_s = std::max(outcome_.t_max_s, seconds);
    }
    return finish(bound_graph(schedule, outcome_.partition));
  }

 private:
  [[nodiscard]] std::size_t iterations() const {
    return o_.iterations.value_or(o_.asynchronous ? 12 : 1);
  }

  void check_size() const {
    constexpr std::size_t most = 1'000'000;  // half a minute of work, and some gigabytes
    auto const layers = problem_.costs.size();
    if (o_.micro_batches_per_call * iterations() > most / layers) {
      throw rp::Error(rp::Errc::invalid_argument,
                      fmt::format("{} layers, {} micro-batches and {} iterations are too many to "
                                  "simulate: their product may be {} at most",
                                  layers,
                                  o_.micro_batches_per_call,
                                  iterations(),
                                  most));
    }
  }

  [[nodiscard]] auto before() const {
    return [this](rp::BlockEvent event) { return protocol_.before(event, blocks_.blocks.size()); };
  }

  [[nodiscard]] rp::ScheduleShape bound_shape(rp::Partition const& partition) const {
    return {partition.forward.size(),
            partition.backward.size(),
            o_.devices,
            o_.micro_batches_per_call,
            1,
            rp::has_fused_stage(partition)};
  }

  [[nodiscard]] BytePlan plan_bytes() const {
    if (given_ && o_.forward_stages.size() > 0 && !rp::has_fused_stage(*given_)) {
      throw rp::Error(rp::Errc::invalid_argument,
                      "--forward-stages must leave the layers of the first backward stage to it: "
                      "this schedule fuses them");
    }
    rp::SlotSimulationOptions simulated;
    simulated.asynchronous = o_.asynchronous;
    simulated.posts_after_losses = false;
    simulated.recompute_waits_for_gradient = o_.recompute_waits_for_gradient;
    simulated.communication_s = problem_.hand_over_s;
    auto const by_bound = o_.partition_by == "bound";
    rp::PartitionProblem problem{.costs = problem_.costs,
                                 .devices = o_.devices,
                                 .micro_batches_per_call = o_.micro_batches_per_call};
    auto const round = o_.micro_batches_per_round.value_or(automatic_round(o_));
    if (o_.micro_batches_per_round || by_bound) {
      problem.micro_batches_per_round = {round};
    }
    StageSource source;
    source.given = given_;
    source.micro_batches_per_round = round;
    source.quick = [&](rp::PartitionProblem const& limited) {
      return rp::RoundPartition{rp::Partitioner{}.partition(limited), round, {}};
    };
    source.good = [&](rp::PartitionProblem const& limited) {
      return by_bound ? rp::best_rounds(limited, rp::Partitioner{}.partition(limited), simulated)
                      : rp::SimulatedPartitioner(simulated).search(limited);
    };
    return plan_within(problem, problem_.bytes, o_.device_memory, source);
  }

  template <rp::Schedule S>
  [[nodiscard]] rp::ActionGraph streamed_graph(S const& schedule, rp::Buffering buffering) const {
    auto const stages = rp::lay_out_stages(description_, blocks_, outcome_.partition, buffering);
    auto const tasks = schedule.tasks(outcome_.shape);
    rp::PriorityTransferEngine const transfers;
    auto graph = rp::build_streamed_graph(
        {blocks_,
         stages.train,
         outcome_.shape,
         tasks,
         schedule.advance(outcome_.shape),
         rp::HostRings(stages.train, outcome_.shape.micro_batches_per_round, outcome_.shape.rounds),
         buffering,
         [&](std::span<rp::Bytes const> tensors, std::size_t windows) {
           return transfers.chunks(tensors, windows);
         },
         before()});
    correct_gradients(graph);
    if (o_.recompute_waits_for_gradient) {
      rp::wait_for_gradients(graph);
    }
    rp::set_role(graph, rp::GraphRole::call, protocol_);
    return graph;
  }

  /// The description makes gradients as large as parameters; here they get their own bytes.
  void correct_gradients(rp::ActionGraph& graph) const {
    for (auto& action : graph.actions) {
      if (action.kind != rp::ActionKind::download_gradients) {
        continue;
      }
      double bytes = 0;
      for (auto const& piece : action.pieces) {
        auto const& layer = problem_.bytes[blocks_.use(piece.use).layer.index()];
        auto const whole = std::max<rp::Bytes>(1, layer.parameter_bytes);
        bytes += static_cast<double>(piece.bytes) * static_cast<double>(layer.gradient_bytes) /
                 static_cast<double>(whole);
      }
      action.bytes = static_cast<rp::Bytes>(bytes);
    }
  }

  template <rp::Schedule S>
  [[nodiscard]] rp::ActionGraph bound_graph(S const& schedule,
                                            rp::Partition const& partition) const {
    auto const shape = bound_shape(partition);
    auto const tasks = schedule.tasks(shape);
    std::vector<rp::Bytes> boundaries;
    for (auto const& layer : problem_.bytes) {
      boundaries.push_back(layer.boundary_bytes);
    }
    auto graph = rp::build_resident_graph({blocks_,
                                           partition,
                                           boundaries,
                                           shape,
                                           tasks,
                                           static_cast<std::size_t>(schedule.advance(shape)),
                                           o_.recompute_waits_for_gradient,
                                           before()});
    rp::set_role(graph, rp::GraphRole::call, protocol_);
    return graph;
  }

  [[nodiscard]] rp::Simulation simulate(rp::ActionGraph const& graph,
                                        rp::ActionGraph const& step,
                                        std::size_t iterations) const {
    rp::GraphSequence sequence(o_.devices);
    for (std::size_t i = 0; i < iterations; ++i) {
      sequence.add(graph).add(step);
    }
    return rp::simulate(sequence, machine_);
  }

  template <rp::Schedule S>
  [[nodiscard]] double call_seconds(S const& schedule, rp::Partition const& partition) const {
    auto const graph = bound_graph(schedule, partition);
    auto const step = rp::build_step_graph(blocks_, protocol_, {});
    return rp::account_bubbles(simulate(graph, step, 1)).makespan_s;
  }

  [[nodiscard]] Outcome finish(rp::ActionGraph const& graph) {
    auto const step = rp::build_step_graph(blocks_, protocol_, {});
    auto simulation = simulate(graph, step, iterations());
    auto const n = static_cast<double>(o_.devices);
    outcome_.objective_s =
        (static_cast<double>(o_.micro_batches_per_call * outcome_.partition.size()) + n * (n - 1)) *
        outcome_.t_max_s;
    outcome_.bubbles = rp::account_bubbles(simulation);
    outcome_.peak_in_flight_forwards = rp::peak_in_flight_forwards(simulation, outcome_.partition);
    outcome_.boundary_transfers = rp::count_hand_overs(simulation);
    if (outcome_.binds) {
      outcome_.device_bytes = rp::bound_device_bytes(simulation, problem_.bytes);
      check_memory();
    }
    outcome_.timeline = std::move(simulation.timeline);
    return std::move(outcome_);
  }

  void check_memory() const {
    auto const largest = std::ranges::max_element(
        outcome_.device_bytes, {}, [](rp::DeviceUse const& use) { return use.total(); });
    if (o_.device_memory && largest->total() > *o_.device_memory) {
      auto const device = static_cast<std::size_t>(largest - outcome_.device_bytes.begin());
      throw rp::Error(
          rp::Errc::over_budget,
          fmt::format("{} keeps its weights on its devices: device {}, which runs stage {} first, "
                      "needs {} bytes ({}), the budget is {} bytes; {} bytes would do",
                      outcome_.schedule,
                      device,
                      device,
                      largest->total(),
                      rp::format_bytes(largest->total()),
                      *o_.device_memory,
                      largest->total()));
    }
  }

  Problem const& problem_;
  Options const& o_;
  rp::ModelDescription description_ = rp::describe_bytes(problem_.bytes);
  rp::ParameterBlocks blocks_ = rp::form_blocks(description_);
  rp::LayerEventProtocol protocol_;
  std::optional<rp::Partition> given_;
  rp::SimulationOptions machine_;
  Outcome outcome_;
};

}  // namespace

std::size_t automatic_round(Options const& o) {
  return rp::round_sizes({.devices = o.devices, .micro_batches_per_call = o.micro_batches_per_call})
      .front();
}

Outcome plan_schedule(std::string const& name, Problem const& problem, Options const& o) {
  Planning planning(name, problem, o);
  auto const layers = problem.costs.size();
  auto const n = o.devices;
  auto outcome = [&]() -> Outcome {
    if (name == "roundpipe") {
      return std::move(planning).stream(
          [](rp::Partition const&) { return rp::RoundRobinSchedule{}; });
    }
    if (name == "earliest-finish") {
      return std::move(planning).stream([&](rp::Partition const& partition) {
        auto speeds = o.device_speeds;
        speeds.resize(n, 1.0);
        return rp::EarliestFinishSchedule(
            rp::stage_times(problem.costs, partition), speeds, problem.hand_over_s);
      });
    }
    if (name == "naive") {
      return std::move(planning).bind(rp::NaiveSchedule{}, n);
    }
    if (name == "gpipe") {
      return std::move(planning).bind(rp::GPipeSchedule{}, n);
    }
    if (name == "1f1b") {
      return std::move(planning).bind(rp::OneFOneBSchedule{}, n);
    }
    if (name == "zb-h1") {
      return std::move(planning).bind(rp::ZbH1Schedule{}, n);
    }
    if (name == "dualpipe") {
      return std::move(planning).bind(rp::DualPipeSchedule{}, n);
    }
    std::vector<std::size_t> candidates;
    if (o.stages_per_device) {
      candidates = {*o.stages_per_device * n};
    } else if (name == "interleaved-1f1b") {
      for (std::size_t stages = n; stages < layers + n; stages += n) {
        candidates.push_back(stages);
      }
    } else {
      constexpr std::size_t most = 100;  // simulations
      auto const step = 1 + std::max(layers, n) / (n + most);
      for (auto stages = n; stages <= std::max(layers, n); stages += step) {
        candidates.push_back(stages);
      }
    }
    return name == "interleaved-1f1b"
               ? std::move(planning).search(rp::InterleavedSchedule{}, candidates)
               : std::move(planning).search(rp::LoopedBfsSchedule{}, candidates);
  }();
  outcome.warnings = warnings_of(outcome, problem);
  return outcome;
}

}  // namespace plan_pipeline
