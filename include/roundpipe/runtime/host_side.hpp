// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a pipeline keeps and does on the host: memory, and the work of the host lanes.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/runtime/actions/gradient_accumulator.hpp>
#include <roundpipe/runtime/actions/gradient_reducer.hpp>
#include <roundpipe/runtime/actions/parameter_copier.hpp>
#include <roundpipe/runtime/actions/parameter_updater.hpp>
#include <roundpipe/runtime/actions/weight_gatherer.hpp>
#include <roundpipe/runtime/execute/host_lane_work.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/policies.hpp>
#include <roundpipe/runtime/rank_agreement.hpp>
#include <roundpipe/runtime/report.hpp>
#include <roundpipe/runtime/state/boundary_store.hpp>
#include <roundpipe/runtime/state/first_values.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/runtime/weight_access.hpp>
#include <roundpipe/system/cpu_plan.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace roundpipe {

/// All that a pipeline has on the host but its batches. The work of a new host lane joins here and
/// in \ref lanes.
template <Backend B, Optimizer O>
struct HostSide {
  AnyProcessGroup group;
  HostArena<B> arena;
  ParameterMemory parameters;
  StepProgress progress;
  WeightAccess weights;
  WorkerPool update_pool;
  ParameterUpdater<O> updater;
  GradientAccumulator accumulator;
  std::optional<GradientReducer> reducer;  // with several ranks
  std::optional<WeightGatherer> gatherer;  // with several ranks
  ParameterCopier copier;
  BoundaryStore boundaries;

  /// Takes all memory that \p plan plans, and sets first values. An operation of all ranks of the
  /// policies' group. \p backend and \p plan must outlive this.
  /// \throws Error (unsupported) for an optimizer with too many states; as
  ///         \ref require_same_training does.
  HostSide(B& backend,
           O optimizer,
           PipelinePlan const& plan,
           PipelineOptions const& options,
           Policies const& policies,
           CpuPlan const& cpus)
      : group(policies.group),
        arena(backend, total_bytes(plan.host.ledger, LedgerLine::Space::host)),
        parameters(plan.blocks,
                   {policies.protocol.master_copies(),
                    policies.protocol.gradient_buffers(),
                    state_arrays(optimizer),
                    options.state_type},
                   plan.host.landings,
                   arena.taker()),
        progress(plan.blocks),
        weights(parameters, progress, group),
        update_pool(cpus.optimizer_threads, cpus.optimizer),
        updater(parameters,
                progress,
                std::move(optimizer),
                arena.taker(),
                {scaler_options(options),
                 !copies_parameters(policies.protocol),
                 waits_for_all(options),
                 options.seed,
                 group},
                update_pool),
        accumulator(parameters, options.seed, cpus.optimizer_threads, cpus.optimizer),
        copier(parameters,
               progress,
               waits_for_all(options),
               copies_parameters(policies.protocol) ? cpus.optimizer_threads : 1,
               cpus.optimizer),
        boundaries(plan.host.rings, arena.taker()) {
    if (group.size() > 1) {
      reducer.emplace(group, plan_options(options).deal(), parameters, accumulator, arena.taker());
      gatherer.emplace(group, parameters, copies_parameters(policies.protocol));
    }
    require_same_training(
        group, plan, options, policies.protocol.staleness(), copies_parameters(policies.protocol));
    set_first_values(parameters, options.seed, update_pool);
  }

  HostSide(HostSide const&) = delete;
  HostSide& operator=(HostSide const&) = delete;

  /// Tells whether a step has overflowed, see \ref ParameterUpdater::has_overflowed.
  [[nodiscard]] auto overflow_test() const noexcept {
    return [this](std::uint64_t step) { return updater.has_overflowed(step); };
  }

  /// The state at \p position, this rank's part of it where ranks share blocks. Call it and \ref
  /// restore while nothing is under way.
  [[nodiscard]] TrainingState state(TrainingPosition position) const {
    position.skipped_steps = progress.skipped_steps();
    return {position, weights.state(position.visible_step), parameters.readers()};
  }

  /// Fills in what the host knows. \c steps are those that were posted.
  void fill(Report& report) const {
    report.steps = progress.trains() ? progress.finished_steps() : report.steps;
    report.skipped_steps = progress.skipped_steps();
    report.host_bytes_peak = arena.bytes();
  }

  /// Goes on from \p matched, as \ref match_parameters returns them, and \p position, a continued
  /// one.
  void restore(std::vector<ParameterState const*> const& matched,
               TrainingPosition const& position) {
    weights.restore(matched, position);
    progress.restore(position.step, position.skipped_steps);
    updater.restore();
    for_each_late_verdict(position, [&](std::uint64_t step, bool overflowed) {
      updater.set_overflowed(step, overflowed);
    });
  }

  /// The work of each host lane.
  [[nodiscard]] std::vector<HostLaneWork*> lanes() {
    std::vector<HostLaneWork*> works{&accumulator};
    if (reducer) {
      works.insert(works.end(), {&*reducer, &*gatherer});
    }
    works.insert(works.end(), {&copier, &updater});
    return works;
  }
};

}  // namespace roundpipe
