// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Trains a model whose weights, gradients, states and activations live on the host.

#include <roundpipe/concepts/requirements.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/runtime/actions/device_actions.hpp>
#include <roundpipe/runtime/batch_feed.hpp>
#include <roundpipe/runtime/evaluation.hpp>
#include <roundpipe/runtime/evaluation_runs.hpp>
#include <roundpipe/runtime/execute/executor.hpp>
#include <roundpipe/runtime/host_side.hpp>
#include <roundpipe/runtime/pipeline_arguments.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/policies.hpp>
#include <roundpipe/runtime/rank_division.hpp>
#include <roundpipe/runtime/recovery.hpp>
#include <roundpipe/runtime/report.hpp>
#include <roundpipe/runtime/run_meters.hpp>
#include <roundpipe/runtime/run_slots.hpp>
#include <roundpipe/runtime/shape_warm_up.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/runtime/training_runs.hpp>
#include <roundpipe/system/cpu_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace roundpipe {

/// \brief Trains \p M on the devices of \p B, which hold no state of it.
///
/// One thread, the controller, calls all members. An error on a thread of a device or of the host
/// stops the pipeline; the controller's next call throws the first such error. After that the
/// report and reading the weights, those of the last finished step, still work, and \ref recover
/// lets the training go on. A call that refuses its arguments changes nothing. With several ranks
/// see PipelineOptions::shard_states for which calls all of them make.
/// \tparam M a \ref Model on the backend's streams.
template <class M, class O, class B>
class Pipeline {
  // Not constraints: sentences say more than failed deductions.
  static_assert(detail::check_arguments<M>());
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
      : model_(std::move(model)),
        options_(complete_options(with_ranks(options, policies.group), backend)),
        cpus_(plan_cpus(usable_cpus(), options_.devices, options_.optimizer_threads)),
        planner_(policies.planner()),
        feed_(model_, options_.capacity),
        plan_(plan_rank(model_, backend, feed_.capacity(), options_, options, optimizer, policies)),
        host_(backend, std::move(optimizer), plan_, options_, policies, cpus_),
        actions_(model_,
                 backend,
                 options_.devices,
                 plan_.stages.memory,
                 host_.parameters,
                 host_.boundaries,
                 {backend, finite_passes_of(options_), options_.devices, host_.arena.taker()}),
        meters_(options_.devices, options_.timeline_calls),
        warm_ups_(model_, backend, feed_, actions_, executor_, options_.devices),
        slots_(executor_, options_, policies.group),
        training_(slots_, plan_, planner_, options_),
        evaluations_(slots_,
                     evaluation_call(plan_, options_, feed_.capacity(), host_.arena.taker()),
                     [this](auto micro_batches) { return evaluation(micro_batches); }),
        executor_(backend, actions_, host_.lanes(), options_.devices, cpus_) {
    if (options_.verify) {
      (void)evaluation(options_.micro_batches_per_round);
    }
    executor_.on_complete = [this](auto const& run, auto const& entries) {
      meters_.add(run, entries, training_.call_program());
    };
    training_.make_slots(feed_.capacity().batch.tensors.bytes(), host_.arena.taker());
  }

  Pipeline(M, O, B&&, PipelineOptions, Policies const& = {}) = delete;  // it would not live on
  Pipeline(Pipeline const&) = delete;
  Pipeline& operator=(Pipeline const&) = delete;

  /// Runs forward and backward of \p batch: micro_batches_per_round times rounds times ranks
  /// micro-batches, whose rounds ranks take in turn. Adds to the gradients of this iteration.
  /// Copies the batch. Returns the loss as soon as it is there, while the backward goes on.
  ///
  /// Where a backend wants it (see `warm_up_seconds` of \ref Backend), a new shape drains the
  /// pipeline and runs each layer once; keep the number of distinct shapes small. Do not use a new
  /// shape while a stream waits for the host and the host waits for this call: they deadlock.
  /// \throws Error (invalid_argument) for a batch that does not fit the options, for more calls
  ///         than `options.calls_per_step` without a step, or while earlier losses are not taken,
  ///         (not_finite) for a loss that is NaN or infinite, which stops the pipeline.
  double forward_backward(Batch const& batch) {
    executor_.rethrow();
    training_.require_losses_taken();
    post_call(batch);
    return take_loss();
  }

  /// The same without the loss, which \ref take_loss returns. Post the next call before you take a
  /// loss, and no device waits for you in between. Waits for the last call but one, as two may be
  /// under way. \throws Error as \ref forward_backward does, but refuses a third loss only.
  void post_call(Batch const& batch) {
    executor_.rethrow();
    require_call_size(batch, options_.micro_batches_per_round, options_.rounds * options_.ranks);
    auto const sliced = feed_.slice(batch);
    warm_ups_.meet(batch);
    auto const& slot = training_.begin_call(host_.overflow_test());
    feed_.stage(batch, sliced, 0, slot.data().batch.size(), slot.data());
    training_.post_call(slot, sliced.gradient_scale);
  }

  /// Waits for the earliest loss that was not taken, and returns it. \throws Error (not_finite) as
  /// \ref forward_backward, but steps posted by then have run; (invalid_argument) for no call.
  double take_loss() {
    executor_.rethrow();
    return training_.take_loss();
  }

  /// Posts an update of the weights by the gradients since the last step; returns at once.
  /// \throws Error (invalid_argument) when there was no such call; where the optimizer refuses the
  ///         step, as a learning rate that is not finite does. Both change nothing.
  void step() {
    executor_.rethrow();
    training_.require_calls("a step follows at least one call");
    host_.updater.check_step(training_.posted().iteration());
    training_.post_step();
  }

  /// Runs forward of \p batch, any number of micro-batches, when all that was posted is finished;
  /// the training goes on as if there had been no evaluation. It sees the newest weights, with P
  /// copies (\ref copies_parameters) those that the next call reads; `Evaluation::step` says which.
  /// \throws Error as \ref forward_backward does.
  Evaluation evaluate(Batch const& batch) {
    auto const sliced = feed_.slice(batch);
    executor_.synchronize();
    warm_ups_.meet(batch);
    return evaluations_.run(
        feed_, batch, sliced, training_.newest(), [this](auto const& slot, double sum) {
          return training_.add_loss(slot, "an evaluation", sum);
        });
  }

  /// Returns when all calls and steps are finished and the master copies hold the newest weights.
  /// The next iteration, too, begins with them.
  void synchronize() { training_.synchronize(); }

  /// Lets the training go on after an error, or after an exception of the caller's own: drops all
  /// that was posted after the last finished step, as if it had never been, and returns its number.
  /// \throws Error (aborted) when a step is half done or the group has ended, and as \ref
  ///         Executor::recover does.
  std::uint64_t recover() {
    roundpipe::recover(executor_, host_, training_);
    meters_.set_counted(training_.posted().calls);
    return training_.posted().steps;
  }

  [[nodiscard]] PipelinePlan const& plan() const noexcept { return plan_; }
  [[nodiscard]] PipelineOptions const& options() const noexcept { return options_; }

  /// What the pipeline has done so far. Waits for the calls and steps under way.
  [[nodiscard]] Report report() {
    executor_.settle();
    Report report;
    report.network = plan_.costs.network();
    training_.fill(report);
    host_.fill(report);
    meters_.fill(report);
    return report;
  }

  /// Lets the report's figures of time begin with the next training call. Waits for nothing.
  void restart_report() noexcept { meters_.leave_out(training_.posted().calls); }

  /// The measured timeline of the latest `options.timeline_calls` runs. Waits for those under way.
  [[nodiscard]] Timeline timeline() {
    executor_.synchronize();
    return meters_.timeline();
  }

  /// All that training continues from, at a step's boundary; where ranks share parameters, this
  /// rank's parts, which a \ref SnapshotWriter puts together. Waits for the steps under way and
  /// leaves no trace. Its views last until the next call of the pipeline.
  /// \throws Error (invalid_argument) when there were calls since the last step.
  [[nodiscard]] TrainingState state() {
    executor_.synchronize();
    return host_.state(training_.position(host_.overflow_test()));
  }

  /// Goes on from \p state, which it copies, as the training that it was taken from: bit for bit
  /// with the same model, optimizer, seed and staleness, whatever the devices, stages, budgets and
  /// threads. Drops the gradients of calls since the last step, and the report's figures of time.
  /// After an error the training goes on, too, also where \ref recover can not help.
  /// \throws Error (invalid_argument), and changes nothing, when a parameter or number does not
  ///         match; the message names it, see \ref match_parameters and \ref continued_position;
  ///         as \ref Executor::recover does.
  void restore(TrainingState const& state) {
    executor_.settle();
    host_.group.rethrow();
    auto const position = training_.continued(state.position);
    auto const parameters = match_parameters(host_.weights.state(0), state, position);
    executor_.recover();
    training_.restore(position);
    host_.restore(parameters, position);
    meters_.restart_at(training_.posted().calls);
  }

  /// Waits for the last step and calls \p f(name, shape, values) for every parameter, shared ones
  /// once, in layer order: fp32 values, for the call; see \ref ParameterBlocks::name_of.
  /// \throws Error (aborted) when an error has stopped a step half way; so do the next two.
  template <class F>
  void for_each_parameter(F&& f) {
    executor_.settle();
    host_.weights.for_each(std::forward<F>(f));
  }

  /// Copies parameter \p name to \p values, of its size.
  /// \throws Error (invalid_argument) when there is no such parameter, or for another size.
  void read_parameter(std::string_view name, HostSpan<float> values) {
    executor_.settle();
    host_.weights.read(host_.weights.find(name, values.size()), values);
  }

  /// Replaces parameter \p name, its master copy too. Synchronizes first.
  /// \throws Error (invalid_argument) as \ref read_parameter does.
  void write_parameter(std::string_view name, HostSpan<float const> values) {
    auto const parameter = host_.weights.find(name, values.size());
    synchronize();
    host_.weights.write(parameter, values);
  }

  /// Lets \p f overwrite parameters, as \ref WeightAccess::overwrite does. Synchronizes first.
  template <class F>
  void overwrite_parameters(F&& f) {
    synchronize();
    host_.weights.overwrite(std::forward<F>(f));
  }

  /// Copies the gradient of parameter \p name to \p values: of the calls since the last step,
  /// without their loss scale, not clipped. Waits for these calls.
  /// \throws Error (invalid_argument) as \ref read_parameter does, and when there is no gradient.
  void read_gradient(std::string_view name, HostSpan<float> values) {
    auto const parameter = host_.weights.find(name, values.size());
    executor_.synchronize();
    host_.weights.read_gradient(parameter, training_.gradients(), values);
  }

  /// The three above for parameter \p index of \p layer.
  void read_parameter(LayerId layer, std::size_t index, HostSpan<float> values) {
    read_parameter(plan_.blocks.name_of(layer, index), values);
  }
  void write_parameter(LayerId layer, std::size_t index, HostSpan<float const> values) {
    write_parameter(plan_.blocks.name_of(layer, index), values);
  }
  void read_gradient(LayerId layer, std::size_t index, HostSpan<float> values) {
    read_gradient(plan_.blocks.name_of(layer, index), values);
  }

 private:
  /// The program of an evaluation. \throws Error as \ref plan_evaluation does.
  [[nodiscard]] GraphProgram evaluation(std::size_t micro_batches) const {
    auto const& flush = training_.flush_program().graph();
    return plan_evaluation(planner_, plan_, flush, options_, micro_batches);
  }

  M model_;
  PipelineOptions options_;
  CpuPlan cpus_;
  AnyPlanner planner_;
  BatchFeed<M> feed_;
  PipelinePlan plan_;
  HostSide<B, O> host_;
  DeviceActions<M, B> actions_;
  RunMeters meters_;
  ShapeWarmUp<M, B> warm_ups_;
  RunSlots<B> slots_;
  TrainingRuns<B> training_;
  EvaluationRuns<B> evaluations_;
  Executor<B> executor_;  // last: its threads use all of the above
};

/// Arguments of which no pipeline can be made: a sentence says so.
template <class... A>
  requires(!detail::PipelineArguments<A...>)
Pipeline(A&&...) -> Pipeline<detail::WrongArguments<A...>, void, void>;

}  // namespace roundpipe
