// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief What does the library choose for one device budget after the other, how fast is that, and
/// does it keep to the budget? `budget_sweep --help` lists the options.

#include <budget_sweep/options.hpp>
#include <budget_sweep/report.hpp>
#include <common/run_program.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/cuda_options.hpp>
#include <roundpipe/cuda/cuda_resources.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/other_processes.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <train_throughput/run.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace budget_sweep;
namespace cu = roundpipe::cu;
using train_throughput::Shared;

/// Runs \p options, which describe \p plan.
Run run_plan(Plan plan,
             train_throughput::Options options,
             roundpipe::nn::TransformerConfig const& config,
             Shared const& shared) {
  Run run{plan, std::move(options), {}, {}};
  try {
    run.outcome = train_throughput::run(run.options, config, shared);
  } catch (roundpipe::Error const& error) {
    if (error.code() != roundpipe::Errc::over_budget) {
      throw;
    }
    run.refusal = error.message();
  }
  return run;
}

/// Full recomputation under the same budget. The forecast chooses the cut that is best for it.
Run run_recomputation(train_throughput::Options options,
                      roundpipe::nn::TransformerConfig const& config,
                      Shared const& shared) {
  options.checkpoints = "stages";
  options.offload = 0;
  return run_plan(Plan::recomputation, std::move(options), config, shared);
}

/// The cut of \p chosen, which has run, with the saves of as many micro-batches offloaded as fit.
Run run_offloading(Run const& chosen,
                   roundpipe::nn::TransformerConfig const& config,
                   Shared const& shared) {
  auto options = chosen.options;
  Run run;
  for (auto n = options.micro_batches_per_round; n > 0 && !run.outcome; --n) {
    options.offload = n;
    run = run_plan(Plan::offloading, options, config, shared);
  }
  return run;
}

/// Pins \p bytes of host memory through device 0. Before that it asks what other processes hold of
/// the devices, because it makes a context.
cu::PinnedMemory pin(Bytes bytes, std::size_t devices) {
  for (auto const device : cu::first_devices(devices)) {
    (void)cu::other_processes_bytes(device);
  }
  cu::CurrentDevice const current(roundpipe::DeviceId(0));
  return cu::PinnedMemory(bytes);
}

void sweep(Options const& o) {
  auto const config = config_of(o.training);
  auto const pinned = pin(o.pinned, o.training.devices);
  Shared const shared{pinned.bytes(), std::make_shared<cu::CudaResources>(), {}};
  std::vector<BudgetRuns> budgets;
  std::size_t faults = 0;
  for (auto const budget : o.budgets) {
    auto options = o.training;
    options.device_memory = budget;
    auto& runs = budgets.emplace_back();
    runs.push_back(run_plan(Plan::chosen, options, config, shared));
    if (o.against && runs.front().outcome) {
      runs.push_back(run_recomputation(options, config, shared));
      auto with_costs = shared;  // of the chosen cut, which the other two have, too
      with_costs.costs = roundpipe::CostModel(runs.front().outcome->layer_costs);
      runs.push_back(run_offloading(runs.front(), config, with_costs));
      // Once more: what has changed meanwhile, as a GPU's clock, then weighs less.
      runs.push_back(run_plan(Plan::chosen, runs.front().options, config, with_costs));
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      std::cout << to_json(runs, i, config).dump() << std::endl;
      faults += faults_of(runs[i]).size();
    }
  }
  print(std::cout, budgets, config);
  if (faults > 0) {
    throw roundpipe::Error(roundpipe::Errc::over_budget,
                           "faults of runs, listed above: " + std::to_string(faults));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("budget_sweep", parse_options, sweep, argc, argv);
}
