// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The configuration that the library chooses by itself, without a device, and how it
/// depends on the device's memory.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/estimate/hardware.hpp>
#include <roundpipe/estimate/model_shape.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/memory/live_bytes.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/runtime/automatic.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <roundpipe/system/cpu_set.hpp>

#include <cstddef>
#include <functional>
#include <vector>

namespace plan_pipeline {

/// A budget that nothing exceeds.
inline constexpr roundpipe::Bytes no_limit = roundpipe::Bytes{1} << 60;

/// What is trained, and on what.
struct AdaptiveProblem {
  roundpipe::ModelShape shape;
  roundpipe::Hardware hardware;
  std::size_t devices = 1;
  roundpipe::BatchShape batch;   ///< Of an iteration: sequences, and tokens of each.
  roundpipe::BatchCut wanted{};  ///< Pins what is not 0.
  roundpipe::Bytes host_memory = no_limit;
  roundpipe::StateType states = roundpipe::StateType::fp32;
};

/// CUDA devices that are known by figures alone.
class PaperDevices {
 public:
  static constexpr double page_table_share = 1.0 / 511;  ///< As of `CudaBackend`.

  PaperDevices(roundpipe::Hardware const& hardware, std::size_t count)
      : properties_(hardware.device), count_(count) {
    properties_.memory_bytes = no_limit;  // the budget counts, not the device
    if (hardware.sustained_flops_per_second > 0) {
      properties_.flops_per_second = hardware.sustained_flops_per_second;
    }
    properties_.streams_keep_engines = true;
  }

  [[nodiscard]] std::size_t device_count() const noexcept { return count_; }
  [[nodiscard]] roundpipe::DeviceProperties device_properties(roundpipe::DeviceId) const {
    return properties_;
  }
  /// Context, modules and libraries of an H200: 0.55 GiB (docs/numbers.md).
  [[nodiscard]] roundpipe::Bytes overhead_bytes(roundpipe::DeviceId) const noexcept {
    return roundpipe::Bytes{563} << 20;
  }

 private:
  roundpipe::DeviceProperties properties_;
  std::size_t count_;
};

/// A choice, and the whole plan that a pipeline would make of it.
struct AdaptivePlan {
  roundpipe::AutomaticChoice choice;
  roundpipe::PipelinePlan plan;  ///< That of \c choice, which has none any more.
  double seconds = 0;            ///< Of an iteration, by forecast: links as the hardware has them.
};

/// What joins hosts: each has a link, as fast both ways, to a switch that carries what all send at
/// once. A host sends and receives H - 1 messages for a reduction or a gather.
struct Network {
  double bytes_per_second = 0;
  double latency_s = 0;  ///< Of a message.
};

/// Searches with `roundpipe::automatic` for the library's own dense transformer in bf16, AdamW and
/// staleness 1. Times are what the layers count, at the hardware's sustained rate, or at its peak
/// where that is unknown. The forecast knows links and memory, and takes the optimizer for hidden.
class AdaptivePlanner {
 public:
  /// Changes options before a plan is made.
  using Change = std::function<void(roundpipe::PipelineOptions&)>;

  /// \throws roundpipe::Error (unsupported) for a mixture of experts.
  explicit AdaptivePlanner(AdaptiveProblem problem);

  [[nodiscard]] AdaptiveProblem const& problem() const noexcept { return problem_; }

  /// What the library chooses when it may hold \p device_memory bytes of each device, as the driver
  /// counts them. So many \p threads plan at once.
  /// \throws roundpipe::OverBudget when nothing fits.
  [[nodiscard]] AdaptivePlan plan(roundpipe::Bytes device_memory,
                                  std::size_t threads = roundpipe::usable_cpus().threads) const;

  /// The seconds of the cut of \p chosen with other options, to compare with those by which it was
  /// chosen; infinite when that does not fit.
  [[nodiscard]] double seconds_with(AdaptivePlan const& chosen, Change const& change) const;

  /// The seconds of an iteration of one of \p hosts hosts that have \p micro_batches_per_round
  /// micro-batches of the size of \p chosen each, in one round; infinite when that does not fit.
  [[nodiscard]] double seconds_on_hosts(AdaptivePlan const& chosen,
                                        std::size_t micro_batches_per_round,
                                        std::size_t hosts,
                                        Network const& network) const;

  /// The most that is live at once on a device while \p plan runs, by forecast.
  [[nodiscard]] roundpipe::LiveBytes most_live_bytes(AdaptivePlan const& plan) const;

  /// The least budget of device memory that does, however much of the host its plan takes.
  [[nodiscard]] roundpipe::Bytes least_device_memory() const;

  [[nodiscard]] double tokens_per_second(AdaptivePlan const& plan) const;

  /// Model FLOPs a second over the devices' peaks. A sequence of S tokens takes 6 S (Psi + S L n_q
  /// h) FLOPs, with Psi parameters and L layers of n_q query heads of size h: the visible half of
  /// attention, and no recomputation.
  [[nodiscard]] double mfu(AdaptivePlan const& plan) const;

 private:
  [[nodiscard]] roundpipe::PipelineOptions options(roundpipe::Bytes device_memory) const;
  [[nodiscard]] roundpipe::PipelinePlan make_plan(roundpipe::PipelineOptions const& options) const;
  /// The hardware as it is, with layers that take \p costs.
  [[nodiscard]] roundpipe::SimulationOptions machine_for(roundpipe::CostModel const& costs) const;

  AdaptiveProblem problem_;
  PaperDevices devices_;
};

/// The plans for growing budgets of device memory: from the least that does, by equal factors, to
/// what the plan without a limit takes. Budgets for which nothing fits the host are left out, and
/// so are plans that the next budget repeats. \p is_planned is called after each.
/// \throws roundpipe::Error (over_budget) when nothing fits the host.
[[nodiscard]] std::vector<AdaptivePlan> frontier(
    AdaptivePlanner const& planner, std::function<void(AdaptivePlan const&)> const& is_planned);

}  // namespace plan_pipeline
