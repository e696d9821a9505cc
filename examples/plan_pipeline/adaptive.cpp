// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "adaptive.hpp"

#include <common/described_transformer.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/memory/live_bytes.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/over_budget.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/runtime/simulated_machine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <optional>
#include <utility>

namespace plan_pipeline {

namespace rp = roundpipe;

namespace {

rp::SimulationOptions machine_of(rp::CostModel const& costs,
                                 rp::DeviceProperties const& device,
                                 double latency_s) {
  auto machine = rp::training_machine(costs, device);
  machine.link.latency_s = latency_s;
  return machine;
}

constexpr rp::Bytes budget_step = rp::Bytes{1} << 20;

}  // namespace

AdaptivePlanner::AdaptivePlanner(AdaptiveProblem problem)
    : problem_(std::move(problem)), devices_(problem_.hardware, problem_.devices) {
  if (problem_.shape.routes()) {
    throw rp::Error(rp::Errc::unsupported,
                    problem_.shape.name +
                        " is a mixture of experts, for which the library has no "
                        "layers: plan it without --global-batch, by formulas");
  }
}

rp::PipelineOptions AdaptivePlanner::options(rp::Bytes device_memory) const {
  return {.devices = problem_.devices,
          .device_memory = device_memory,
          .host_memory = problem_.host_memory,
          .state_type = problem_.states,
          .forecast = [latency_s = problem_.hardware.latency_seconds](
                          rp::ActionGraph const& call,
                          rp::ActionGraph const& step,
                          rp::CostModel const& costs,
                          rp::DeviceProperties const& device) {
            auto const machine = machine_of(costs, device, latency_s);
            return rp::forecast_iteration_seconds(
                call, step, rp::with_link_margin(machine, call.devices));
          }};
}

rp::PipelinePlan AdaptivePlanner::make_plan(rp::PipelineOptions const& options) const {
  auto const model = examples::described_transformer(problem_.shape);
  rp::ShapeCache const shapes(model, options.capacity);
  rp::Planner const planner(rp::RoundRobinSchedule{},
                            rp::PriorityTransferEngine{},
                            rp::LayerEventProtocol{},
                            rp::Partitioner{});
  return rp::make_pipeline_plan(
      model, devices_, planner, shapes.capacity(), options, rp::needs_of(rp::AdamW{}));
}

AdaptivePlan AdaptivePlanner::plan(rp::Bytes device_memory, std::size_t threads) const {
  auto choice = rp::automatic(examples::described_transformer(problem_.shape),
                              rp::AdamW{},
                              devices_,
                              options(device_memory),
                              problem_.batch,
                              problem_.wanted,
                              {},
                              threads);
  auto plan = *std::exchange(choice.plan, {});
  auto const seconds =
      rp::forecast_iteration_seconds(plan.graph, plan.step, machine_for(plan.costs));
  return {std::move(choice), std::move(plan), seconds};
}

double AdaptivePlanner::seconds_with(AdaptivePlan const& chosen, Change const& change) const {
  auto options = chosen.choice.options;
  options.seconds_to_beat = rp::PipelineOptions{}.seconds_to_beat;  // the other may well lose
  change(options);
  try {
    return make_plan(options).seconds;
  } catch (rp::Error const& error) {
    if (error.code() != rp::Errc::over_budget) {
      throw;
    }
    return std::numeric_limits<double>::infinity();
  }
}

double AdaptivePlanner::seconds_on_hosts(AdaptivePlan const& chosen,
                                         std::size_t micro_batches_per_round,
                                         std::size_t hosts,
                                         Network const& network) const {
  return seconds_with(chosen, [&](rp::PipelineOptions& options) {
    options.micro_batches_per_round = micro_batches_per_round;
    options.rounds = 1;
    options.ranks = hosts;
    options.forecast = [&network, hosts, latency_s = problem_.hardware.latency_seconds](
                           rp::ActionGraph const& call,
                           rp::ActionGraph const& step,
                           rp::CostModel const& costs,
                           rp::DeviceProperties const& device) {
      auto machine = machine_of(costs, device, latency_s);
      machine.compute.network_bytes_per_second = network.bytes_per_second;
      machine.compute.network_latency_s = static_cast<double>(hosts - 1) * network.latency_s;
      constexpr std::size_t warm_up = 4;  // where the network is the limit
      return rp::forecast_iteration_seconds(call, step, machine, warm_up);
    };
  });
}

rp::LiveBytes AdaptivePlanner::most_live_bytes(AdaptivePlan const& plan) const {
  return rp::most_live_bytes(plan.plan, machine_for(plan.plan.costs));
}

rp::SimulationOptions AdaptivePlanner::machine_for(rp::CostModel const& costs) const {
  return machine_of(
      costs, devices_.device_properties(rp::DeviceId(0)), problem_.hardware.latency_seconds);
}

rp::Bytes AdaptivePlanner::least_device_memory() const {
  try {
    (void)plan(1);
  } catch (rp::OverBudget const& lack) {
    return lack.least();
  }
  return 1;
}

double AdaptivePlanner::tokens_per_second(AdaptivePlan const& plan) const {
  return static_cast<double>(problem_.batch.positions()) / plan.seconds;
}

double AdaptivePlanner::mfu(AdaptivePlan const& plan) const {
  auto const number = [](std::int64_t n) { return static_cast<double>(n); };
  auto const& shape = problem_.shape;
  auto const attention = number(problem_.batch.length) * number(shape.layers) *
                         number(shape.heads) * number(shape.head_dim);
  auto const of_token = 6 * (static_cast<double>(plan.plan.blocks.parameter_count()) + attention);
  return of_token * tokens_per_second(plan) / static_cast<double>(problem_.devices) /
         problem_.hardware.device.flops_per_second;
}

std::vector<AdaptivePlan> frontier(AdaptivePlanner const& planner,
                                   std::function<void(AdaptivePlan const&)> const& is_planned) {
  constexpr int points = 8;
  auto const least = planner.least_device_memory();
  auto all = planner.plan(no_limit);
  auto const most = rp::total_bytes(all.plan.ledger, rp::LedgerLine::Space::device);
  all.choice.options.device_memory = most;
  auto const factor = static_cast<double>(most) / static_cast<double>(least);
  std::vector<std::future<AdaptivePlan>> searches;
  for (int i = 0; i + 1 < points && factor > 1; ++i) {
    auto const budget = static_cast<double>(least) * std::pow(factor, double(i) / (points - 1));
    searches.push_back(
        std::async(std::launch::async, [&planner, bytes = static_cast<rp::Bytes>(budget)] {
          return planner.plan(rp::align_up(bytes, budget_step), 1);
        }));
  }
  std::vector<AdaptivePlan> plans;
  auto const add = [&](AdaptivePlan plan) {
    if (plans.empty() || plan.seconds != plans.back().seconds) {
      is_planned(plan);
      plans.push_back(std::move(plan));
    }
  };
  for (auto& search : searches) {
    try {
      add(search.get());
    } catch (rp::Error const& error) {
      if (error.code() != rp::Errc::over_budget) {
        throw;
      }  // for the host
    }
  }
  add(std::move(all));
  return plans;
}

}  // namespace plan_pipeline
