// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Trains a model whose weights, gradients, states and activations live on the host.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/requirements.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/graph/verify.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/optim/optimizer_needs.hpp>
#include <roundpipe/runtime/actions/device_actions.hpp>
#include <roundpipe/runtime/batch_feed.hpp>
#include <roundpipe/runtime/evaluation.hpp>
#include <roundpipe/runtime/evaluation_runs.hpp>
#include <roundpipe/runtime/execute/executor.hpp>
#include <roundpipe/runtime/host_side.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/policies.hpp>
#include <roundpipe/runtime/probe/warm_up.hpp>
#include <roundpipe/runtime/report.hpp>
#include <roundpipe/runtime/run_meters.hpp>
#include <roundpipe/runtime/run_slots.hpp>
#include <roundpipe/runtime/training_runs.hpp>
#include <roundpipe/system/cpu_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// \brief Trains \p M on the devices of \p B, which hold no state of it.
///
/// One thread, the controller, calls all members. An error on a thread of a device or of the host
/// stops the pipeline; the controller's next call throws the first such error. After that the
/// report still works, and so does reading the weights, which are those of the last finished step;
/// but where the error has stopped a step half way (see \ref StepStart), reading them throws.
/// A call that refuses its arguments changes nothing.
///
/// \tparam M a \ref Model on the backend's streams.
template <class M, class O, class B>
class Pipeline {
  // Not constraints: sentences say more than failed deductions.
  static_assert(detail::check_optimizer<O>());
  static_assert(detail::check_backend<B>());
  static_assert(detail::check_model<M, typename B::Stream>());

 public:
  /// Plans, reserves all memory, and sets first values. \p backend must outlive the pipeline.
  /// \throws Error (invalid_argument, boundary_mismatch) for a model or options that make no sense,
  ///         (unsupported) for a schedule that cannot be run or results of a layer that is not the
  ///         last, (over_budget) when the plan does not fit a device or the host, (unsafe_graph)
  ///         when a policy leaves an order of actions to chance, see \ref verify.
  Pipeline(M model, O optimizer, B& backend, PipelineOptions options, Policies const& policies = {})
      : backend_(backend),
        model_(std::move(model)),
        options_(complete_options(options, backend)),
        cpus_(plan_cpus(usable_cpus(), options_.devices, options_.optimizer_threads)),
        planner_(policies.planner()),
        feed_(model_, options_.capacity),
        plan_(make_pipeline_plan(
            model_, backend, planner_, feed_.capacity(), options_, needs_of(optimizer))),
        host_(backend, std::move(optimizer), plan_, options_, planner_.protocol(), cpus_),
        actions_(model_,
                 backend,
                 options_.devices,
                 plan_.stages.memory,
                 host_.parameters,
                 host_.boundaries),
        meters_(options_.devices, options_.timeline_calls),
        slots_(executor_, options_),
        training_(slots_,
                  plan_,
                  planner_.flush_graph(plan_.blocks),
                  options_,
                  planner_.protocol().staleness()),
        evaluations_(slots_, evaluation_call(), [this](auto count) { return evaluation(count); }),
        executor_(backend, actions_, host_.lanes(), options_.devices, cpus_) {
    if (options_.verify) {
      (void)evaluation(options_.micro_batches_per_round);
    }
    executor_.on_complete = [this](auto const& run, auto const& entries) {
      meters_.add(run, entries, training_.call_program());
    };
    training_.make_slots(plan_.stages.train,
                         options_.micro_batches_per_round * options_.rounds,
                         feed_.capacity().batch.tensors.bytes(),
                         host_.arena.taker());
  }

  /// A temporary backend would not outlive the pipeline.
  Pipeline(M, O, B&&, PipelineOptions, Policies const& = {}) = delete;

  Pipeline(Pipeline const&) = delete;
  Pipeline& operator=(Pipeline const&) = delete;

  /// Runs forward and backward of \p batch, micro_batches_per_round times rounds micro-batches, and
  /// adds to the gradients of this iteration. Copies the batch. Returns the loss as soon as it is
  /// there, while the backward goes on.
  ///
  /// Where a backend wants it (see `warm_up_seconds` of \ref Backend), a new shape drains the
  /// pipeline and runs each layer once; keep the number of distinct shapes small. Do not use a new
  /// shape while a stream waits for the host and the host waits for this call: they deadlock.
  /// \throws Error (invalid_argument) for a batch that does not fit the options, or for more calls
  ///         than `options.calls_per_step` without a step, (not_finite) for a loss that is NaN or
  ///         infinite, which stops the pipeline.
  double forward_backward(Batch const& batch) {
    executor_.rethrow();
    require_call_size(batch, options_.micro_batches_per_round, options_.rounds);
    require(posted().pending_calls < options_.calls_per_step,
            Errc::invalid_argument,
            "there were as many calls since the last step as calls_per_step allows");
    auto const sliced = feed_.slice(batch);
    warm_up_new_shapes(batch);
    auto const& slot = training_.begin_call(
        [this](std::uint64_t step) { return host_.updater.has_overflowed(step); });
    feed_.stage(batch, sliced, 0, batch.size(), slot.data());
    training_.post_call(slot, sliced.gradient_scale);
    return training_.add_loss(slot, "step " + std::to_string(posted().iteration()));
  }

  /// Lets the optimizer's worker update the weights with the gradients of the calls since the last
  /// step; returns at once.
  /// \throws Error (invalid_argument) when there was no such call.
  void step() {
    executor_.rethrow();
    require(posted().pending_calls > 0, Errc::invalid_argument, "a step follows at least one call");
    training_.post_step();
  }

  /// Runs forward of \p batch, any number of micro-batches, with the newest weights: it
  /// synchronizes first, so that with staleness 1 the next iteration, too, begins with them.
  /// \throws Error as \ref forward_backward does.
  Evaluation evaluate(Batch const& batch) {
    auto const sliced = feed_.slice(batch);
    synchronize();
    warm_up_new_shapes(batch);
    return evaluations_.run(feed_, batch, sliced, posted(), [this](auto const& slot, double sum) {
      return training_.add_loss(slot, "an evaluation", sum);
    });
  }

  /// Returns when all calls and steps are finished and the master copies hold the newest weights.
  void synchronize() {
    executor_.rethrow();
    if (copies_parameters(planner_.protocol())) {
      training_.post_flush();
    }
    executor_.synchronize();
    training_.set_synchronized();
  }

  [[nodiscard]] PipelinePlan const& plan() const noexcept { return plan_; }
  [[nodiscard]] PipelineOptions const& options() const noexcept { return options_; }

  /// What the pipeline has done so far. Waits for the calls and steps under way.
  [[nodiscard]] Report report() {
    executor_.settle();
    Report report;
    report.calls = posted().calls;
    report.steps = host_.progress.trains() ? host_.progress.finished_steps() : posted().steps;
    report.skipped_steps = host_.progress.skipped_steps();
    meters_.fill(report);
    report.device_bytes_peak = plan_.stages.memory.bytes;
    report.host_bytes_peak = host_.arena.bytes();
    return report;
  }

  /// Lets the report's figures of time begin with the next training call. Waits for nothing.
  void restart_report() noexcept { meters_.leave_out(posted().calls); }

  /// The measured timeline of the latest `options.timeline_calls` runs. Waits for those under way.
  [[nodiscard]] Timeline timeline() {
    executor_.synchronize();
    return meters_.timeline();
  }

  /// Calls \p f(name, shape, values) for every parameter, in layer order, shared ones once. The
  /// values are the last step's as fp32; they live until \p f returns. Waits for that step.
  /// \throws Error (aborted) when an error has stopped a step half way; so do the next two.
  template <class F>
  void for_each_parameter(F&& f) {
    settle_weights();
    host_.weights.for_each(std::forward<F>(f));
  }

  /// Copies parameter \p index of \p layer to \p values, of its size.
  /// \throws Error (invalid_argument) when there is no such parameter, or for another size.
  void read_parameter(LayerId layer, std::size_t index, HostSpan<float> values) {
    settle_weights();
    host_.weights.read(host_.weights.find(layer, index, values.size()), values);
  }

  /// Replaces parameter \p index of \p layer, its master copy too. Synchronizes first.
  /// \throws Error (invalid_argument) as \ref read_parameter does.
  void write_parameter(LayerId layer, std::size_t index, HostSpan<float const> values) {
    auto const place = host_.weights.find(layer, index, values.size());
    synchronize();
    settle_weights();
    host_.weights.write(place, values);
  }

 private:
  [[nodiscard]] PostedWork const& posted() const noexcept { return training_.posted(); }

  /// The graph of an evaluation of \p micro_batches micro-batches.
  /// \throws Error (unsafe_graph) when a policy leaves an order to chance.
  [[nodiscard]] ActionGraph evaluation(std::size_t micro_batches) const {
    auto graph = planner_.evaluation_graph(
        plan_.blocks, plan_.stages, plan_options(options_), micro_batches);
    if (options_.verify) {
      require_safe(training_sequence({plan_.graph,
                                      training_.step_program().graph(),
                                      training_.flush_program().graph(),
                                      graph,
                                      std::min<std::size_t>(options_.calls_per_step, 2)},
                                     options_.devices));
    }
    return graph;
  }

  /// What all evaluations have in common.
  [[nodiscard]] CallData evaluation_call() {
    CallData call;
    take_staging(call,
                 options_.micro_batches_per_round,
                 feed_.capacity().batch.tensors.bytes(),
                 plan_.model.layers.back().results.bytes(),
                 host_.arena.taker());
    call.stages = plan_.stages.evaluate;
    call.micro_batches_per_round = options_.micro_batches_per_round;
    call.evaluating = true;
    return call;
  }

  /// Lets devices see shapes that are new to them, while nothing else is under way.
  void warm_up_new_shapes(Batch const& batch) {
    if constexpr (HasWarmUp<B>) {
      for (std::size_t m = 0; m < batch.size(); ++m) {
        if (auto const shape = batch.shape(m); std::count(met_.begin(), met_.end(), shape) == 0) {
          executor_.synchronize();
          warm_up(model_, backend_, feed_.at(shape).model, options_.devices, actions_.arenas());
          met_.push_back(shape);
        }
      }
    }
  }

  /// Waits until no step is under way. \throws Error (aborted) when one will never be finished.
  void settle_weights() {
    executor_.settle();
    host_.weights.require_whole();
  }

  B& backend_;
  M model_;
  PipelineOptions options_;
  CpuPlan cpus_;
  AnyPlanner planner_;
  BatchFeed<M> feed_;
  PipelinePlan plan_;
  HostSide<B, O> host_;
  DeviceActions<M, B> actions_;
  RunMeters meters_;
  std::vector<BatchShape> met_{options_.capacity};  // shapes that devices have seen
  RunSlots<B> slots_;
  TrainingRuns<B> training_;
  EvaluationRuns<B> evaluations_;
  Executor<B> executor_;  // last: its threads use all of the above
};

}  // namespace roundpipe
