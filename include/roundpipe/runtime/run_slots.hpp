// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Slots for a pipeline's runs: what each run is about, and the loss that it brings.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/dealt_rounds.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/execute/executor.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/rank_agreement.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>

namespace roundpipe {

/// What the controller has posted so far.
struct PostedWork {
  std::size_t calls = 0;  ///< Training calls.
  std::uint64_t steps = 0;
  std::size_t pending_calls = 0;   ///< Since the last step.
  std::uint64_t visible_step = 0;  ///< The step whose weights the next call reads.

  /// The number of the step that comes next.
  [[nodiscard]] std::uint64_t iteration() const noexcept { return steps + 1; }

  void add_call() noexcept {
    ++calls;
    ++pending_calls;
  }
  /// \p staleness: how many steps behind the newest one the next call's weights may be.
  void add_step(int staleness) noexcept;
};

/// A slot for runs of one program, one at a time.
template <Backend B>
struct RunSlot {
  std::unique_ptr<CallData> call;
  GraphRun<B>* run = nullptr;

  [[nodiscard]] CallData& data() const { return *call; }
  /// Whether the slot's run is step \p step, not yet known to be over.
  [[nodiscard]] bool runs_step(std::uint64_t step) const {
    return run->in_flight() && call->iteration == step;
  }
};

/// Makes slots and runs them on an executor.
template <Backend B>
class RunSlots {
 public:
  /// \p executor may be made after this, but before any use. \p group shares training calls.
  RunSlots(Executor<B>& executor, PipelineOptions const& options, AnyProcessGroup group = {})
      : executor_(executor),
        group_(std::move(group)),
        deal_(plan_options(options).deal()),
        micro_batches_per_round_(options.micro_batches_per_round),
        seed_(options.seed) {}

  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] Executor<B>& executor() const noexcept { return executor_; }

  /// A slot for runs of \p program. It, \p program and \p stages must outlive the executor.
  [[nodiscard]] RunSlot<B> make(GraphProgram const& program, std::span<StageLayout const> stages) {
    RunSlot<B> slot{std::make_unique<CallData>(), nullptr};
    slot.data().stages = stages;
    slot.data().micro_batches_per_round = micro_batches_per_round_;
    slot.data().rank = group_.rank();
    slot.data().deal = deal_;
    slot.data().seed = seed_;
    slot.run = &executor_.make_run(program, slot.data());
    return slot;
  }

  /// Waits until the slot's run before is over, and begins the next.
  void begin(RunSlot<B> const& slot, PostedWork const& posted) {
    executor_.begin(*slot.run, static_cast<std::size_t>(posted.iteration()));
    slot.data().iteration = posted.iteration();
    slot.data().version = posted.visible_step;
  }
  /// The same for a run about \p call.
  void begin(RunSlot<B> const& slot, PostedWork const& posted, CallData const& call) {
    begin(slot, posted);
    slot.data() = call;
    slot.data().iteration = posted.iteration();
    slot.data().version = posted.visible_step;
  }

  void post(RunSlot<B> const& slot) { executor_.post(*slot.run); }

  /// Waits for the losses of the slot's run, on all ranks that share it. \returns \p sum and them,
  /// added in the order of their micro-batches, divided by the loss scale.
  [[nodiscard]] double wait_for_loss(RunSlot<B> const& slot, double sum) {
    for (auto const id : slot.run->program().losses()) {
      executor_.collect_complete();  // there is time for it now, and none before the next call
      executor_.wait(*slot.run, id);
    }
    stops_with([&] {
      for (auto const loss : losses_of(group_, slot.data())) {
        sum += loss;
      }
    });
    return sum / slot.data().loss_scale;
  }

  /// Waits until the gradients of the slot's run, a step, are measured.
  void wait_for_norms(RunSlot<B> const& slot) {
    for (auto const id : slot.run->program().norms()) {
      executor_.wait(*slot.run, id);
    }
  }

  /// Lets what \p f throws stop the executor, and throws it.
  template <class F>
  void stops_with(F&& f) {
    try {
      f();
    } catch (...) {
      executor_.fail(std::current_exception());
      executor_.rethrow();
    }
  }

  /// Waits until the slot's run is over, if one is under way.
  void wait_complete(RunSlot<B> const& slot) {
    if (slot.run->in_flight()) {
      executor_.wait_complete(*slot.run);
    }
  }

 private:
  Executor<B>& executor_;
  AnyProcessGroup group_;
  DealtRounds deal_;
  std::size_t micro_batches_per_round_;
  std::uint64_t seed_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/run_slots.ipp>
#endif
