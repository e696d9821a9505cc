// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs the calls and the steps of a training, each iteration with its loss scale.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/runtime/batch_feed.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/report.hpp>
#include <roundpipe/runtime/run_slots.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>
#include <roundpipe/runtime/state/loss_scale_control.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/runtime/weight_access.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace roundpipe {

/// The programs of calls, steps and flushes, and their slots.
template <Backend B>
class TrainingRuns {
 public:
  /// \p plan is by \p planner. \p slots and \p plan must outlive this, and this the executor.
  template <class... P>
  TrainingRuns(RunSlots<B>& slots,
               PipelinePlan const& plan,
               Planner<P...> const& planner,
               PipelineOptions const& options)
      : slots_(slots),
        plan_(plan),
        call_program_(plan.graph, action_names(plan)),
        step_program_(plan.step, action_names(plan)),
        flush_program_(planner.flush_graph(plan.blocks), action_names(plan)),
        loss_scale_(options.loss_scale, planner.protocol().staleness()),
        micro_batches_(options.micro_batches_per_round * plan_options(options).rounds),
        calls_per_step_(options.calls_per_step),
        staleness_(planner.protocol().staleness()),
        copies_parameters_(roundpipe::copies_parameters(planner.protocol())),
        marks_(calls_in_flight + 1, Mark{posted_, loss_scale_}) {}

  TrainingRuns(TrainingRuns const&) = delete;
  TrainingRuns& operator=(TrainingRuns const&) = delete;

  /// Makes the slots, once the executor is there. Each call stages its micro-batches, of \p
  /// batch_bytes each, in memory from \p take.
  void make_slots(Bytes batch_bytes, TakeHostMemory const& take) {
    for (std::size_t i = 0; i < calls_in_flight; ++i) {
      calls_.push_back(slots_.make(call_program_, plan_.stages.train));
      take_staging(calls_.back().data(), micro_batches_, batch_bytes, 0, take);
      steps_.push_back(slots_.make(step_program_, {}));
    }
    flush_ = slots_.make(flush_program_, {});
  }

  [[nodiscard]] GraphProgram const& call_program() const noexcept { return call_program_; }
  [[nodiscard]] GraphProgram const& step_program() const noexcept { return step_program_; }
  [[nodiscard]] GraphProgram const& flush_program() const noexcept { return flush_program_; }
  [[nodiscard]] PostedWork const& posted() const noexcept { return posted_; }

  /// Fills in what was posted, and the plan's bytes.
  void fill(Report& report) const {
    report.calls = posted_.calls;
    report.steps = posted_.steps;
    report.device_bytes_peak = plan_.stages.memory.bytes;
  }

  /// Begins a training call, whose batch is then staged. \p has_overflowed tells whether the
  /// gradients of a step, which are measured, were not finite.
  /// \throws Error (invalid_argument) when an iteration has no more calls, or as many losses wait
  ///         to be taken as calls may be in flight, and then nothing begins.
  [[nodiscard]] RunSlot<B>& begin_call(std::function<bool(std::uint64_t)> const& has_overflowed) {
    require(posted_.pending_calls < calls_per_step_,
            Errc::invalid_argument,
            "there were as many calls since the last step as calls_per_step allows");
    require(untaken_losses_ < calls_in_flight,
            Errc::invalid_argument,
            "two calls are posted whose losses were not taken: take_loss() comes first");
    if (posted_.pending_calls == 0) {
      stops_behind_steps([&] {
        loss_scale_.adapt(posted_.iteration(), [&](std::uint64_t step) {
          if (auto const& slot = step_slot(step); slot.runs_step(step)) {
            slots_.wait_for_norms(slot);
          }
          return has_overflowed(step);
        });
      });
    }
    auto& slot = calls_[posted_.calls % calls_in_flight];
    slots_.begin(slot, posted_);
    auto& call = slot.data();
    call.loss_scale = loss_scale_.value();
    call.number = static_cast<std::uint32_t>(posted_.calls);
    call.begins_gradients = posted_.pending_calls == 0;
    return slot;
  }

  /// Posts the call that has begun; \p gradient_scale is one over the terms of its loss.
  void post_call(RunSlot<B> const& slot, double gradient_scale) {
    slot.data().gradient_scale = gradient_scale * slot.data().loss_scale;
    slots_.post(slot);
    posted_.add_call();
    ++untaken_losses_;
  }

  /// \throws Error (invalid_argument) while losses of posted calls are not taken.
  void require_losses_taken() const {
    require(untaken_losses_ == 0,
            Errc::invalid_argument,
            "take_loss() comes first: calls are posted whose losses were not taken");
  }

  /// Waits for the loss of the earliest call whose loss was not taken, and takes it.
  /// \throws Error (invalid_argument) when there is none, and as \ref add_loss does.
  double take_loss() {
    require(untaken_losses_ > 0, Errc::invalid_argument, "no call is posted whose loss is untaken");
    auto const& slot = calls_[(posted_.calls - untaken_losses_) % calls_in_flight];
    auto const loss = add_loss(slot, "step " + std::to_string(slot.data().iteration));
    --untaken_losses_;
    return loss;
  }

  /// \throws Error (invalid_argument), which says \p why, when no call followed the last step.
  void require_calls(char const* why) const {
    require(posted_.pending_calls > 0, Errc::invalid_argument, why);
  }

  /// Posts a step with the gradients of the calls since the last one.
  void post_step() {
    auto const& slot = step_slot(posted_.iteration());
    slots_.begin(slot, posted_);
    slot.data().loss_scale = loss_scale_.value();
    slots_.post(slot);
    posted_.add_step(staleness_);
    mark() = {posted_, loss_scale_};
  }

  /// Whether P copies are separate actions.
  [[nodiscard]] bool copies_parameters() const noexcept { return copies_parameters_; }

  /// Returns when all that was posted is finished, and master copies hold the newest weights.
  void synchronize() {
    auto& executor = slots_.executor();
    executor.synchronize();
    if (copies_parameters_) {
      slots_.begin(flush_, posted_);
      slots_.post(flush_);
      executor.synchronize();
    }
    set_visible(posted_.steps);
  }

  /// What was posted, for a run that reads the newest weights of a master copy while nothing is
  /// under way.
  [[nodiscard]] PostedWork newest() const noexcept {
    auto posted = posted_;
    posted.visible_step = copies_parameters_ ? posted.visible_step : posted.steps;
    return posted;
  }

  /// Takes back what was posted after step \p step, one of the last three, which is finished; no
  /// run is under way. Losses that were not taken are gone; so it is with \ref restore.
  void go_back_to(std::uint64_t step) {
    auto const& then = marks_[step % marks_.size()];
    posted_ = then.posted;
    untaken_losses_ = 0;
    loss_scale_.go_back(then.loss_scale, posted_.iteration());
  }
  /// Says that the next call reads the weights of step \p step.
  void set_visible(std::uint64_t step) noexcept {
    posted_.visible_step = step;
    mark().posted.visible_step = step;
  }

  /// Where the training stands, but for its skipped steps. Call it and \ref restore while nothing
  /// is under way. \p has_overflowed: see \ref begin_call.
  /// \throws Error (invalid_argument) when there were calls since the last step.
  [[nodiscard]] TrainingPosition position(
      std::function<bool(std::uint64_t)> const& has_overflowed) const {
    require(posted_.pending_calls == 0,
            Errc::invalid_argument,
            "a training has a state after a step, and there were calls since the last one");
    TrainingPosition position{.step = posted_.steps,
                              .visible_step = posted_.visible_step,
                              .calls = posted_.calls,
                              .seed = slots_.seed(),
                              .first_device = slots_.executor().first_device(),
                              .loss_scale = loss_scale_.state()};
    for_each_late_verdict(
        position, [&](std::uint64_t step, bool& overflowed) { overflowed = has_overflowed(step); });
    return position;
  }

  /// \p position as this training continues from it. \throws Error as \ref continued_position does.
  [[nodiscard]] TrainingPosition continued(TrainingPosition const& position) const {
    return continued_position(position, slots_.seed(), staleness_);
  }

  /// Goes on from \p position, a continued one; drops the gradients of calls since the last step.
  /// \throws Error as \ref LossScaleControl::restore does.
  void restore(TrainingPosition const& position) {
    loss_scale_.restore(position.loss_scale);
    posted_ = {.calls = static_cast<std::size_t>(position.calls),
               .steps = position.step,
               .visible_step = position.visible_step};
    untaken_losses_ = 0;
    mark() = {posted_, loss_scale_};
    slots_.executor().set_first_device(static_cast<std::size_t>(position.first_device));
  }

  /// The gradients of the calls since the last step.
  /// \throws Error (invalid_argument) when there was no such call.
  [[nodiscard]] PendingGradients gradients() const {
    require_calls(
        "gradients are there from a call to the step that uses them, and there was no call");
    return {posted_.iteration(), loss_scale_.value()};
  }

  /// Waits for the losses of a run and adds them to \p sum. A loss that is not finite stops the
  /// executor, behind the steps under way, which need nothing of the run.
  /// \throws Error (not_finite) which says \p where that was.
  double add_loss(RunSlot<B> const& slot, std::string const& where, double sum = 0) {
    auto const loss = slots_.wait_for_loss(slot, sum);
    if (!std::isfinite(loss)) {
      stops_behind_steps([&] { throw loss_error(plan_, where); });
    }
    return loss;
  }

 private:
  /// What was posted when a step had been.
  struct Mark {
    PostedWork posted;
    LossScaleControl loss_scale;
  };

  [[nodiscard]] Mark& mark() noexcept { return marks_[posted_.steps % marks_.size()]; }

  /// Lets what \p f throws stop the executor, once the steps under way are complete.
  template <class F>
  void stops_behind_steps(F&& f) {
    slots_.stops_with([&] {
      try {
        f();
      } catch (...) {
        for (auto const& step : steps_) {
          slots_.wait_complete(step);
        }
        throw;
      }
    });
  }

  [[nodiscard]] RunSlot<B> const& step_slot(std::uint64_t step) const {
    return steps_[step % calls_in_flight];
  }

  RunSlots<B>& slots_;
  PipelinePlan const& plan_;
  GraphProgram call_program_;
  GraphProgram step_program_;
  GraphProgram flush_program_;
  LossScaleControl loss_scale_;
  std::size_t micro_batches_;  // of a call
  std::size_t calls_per_step_;
  int staleness_;
  bool copies_parameters_;
  PostedWork posted_;
  std::size_t untaken_losses_ = 0;  // of the latest calls
  std::vector<Mark> marks_;         // by step: those that may be under way, and the one before
  std::vector<RunSlot<B>> calls_;
  std::vector<RunSlot<B>> steps_;
  RunSlot<B> flush_;
};

}  // namespace roundpipe
