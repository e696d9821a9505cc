// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Trains a model whose weights, gradients, states and activations live on the host.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/graph/verify.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/optim/loss_scale.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/runtime/evaluation.hpp>
#include <roundpipe/runtime/execute/action_dispatcher.hpp>
#include <roundpipe/runtime/execute/device_actions.hpp>
#include <roundpipe/runtime/execute/executor.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/probe/warm_up.hpp>
#include <roundpipe/runtime/report.hpp>
#include <roundpipe/runtime/run_meters.hpp>
#include <roundpipe/runtime/state/batch_staging.hpp>
#include <roundpipe/runtime/state/boundary_store.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>
#include <roundpipe/runtime/state/parameter_store.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/system/cpu_plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// \brief Trains \p Model on the devices of \p B, which hold no state of it.
///
/// One thread, the controller, calls all members. Errors of the devices' and the host's threads
/// stop the pipeline, and the controller's next call throws the first of them. What still works
/// then is the report and reading the weights, which are those of the last finished step; where an
/// error has stopped a step half way (see \ref StepStart), reading them throws. Arguments that are
/// refused change nothing.
///
/// \tparam S deals stages to devices. \tparam T cuts and places copies. \tparam E orders the
/// optimizer. \tparam P cuts the model into stages.
template <class Model,
          Optimizer O,
          Backend B,
          Schedule S = RoundRobinSchedule,
          TransferPolicy T = PriorityTransferEngine,
          EventProtocol E = LayerEventProtocol,
          PartitionPolicy P = Partitioner>
class Pipeline {
 public:
  /// Plans, reserves all memory, and sets first values. \p backend must outlive the pipeline.
  /// \throws Error (invalid_argument, boundary_mismatch) for a model or options that make no sense,
  ///         (unsupported) for a schedule that cannot be run or results of a layer that is not the
  ///         last, (over_budget) when the plan does not fit a device or the host, (unsafe_graph)
  ///         when a policy leaves an order of actions to chance, see \ref verify.
  Pipeline(Model model,
           O optimizer,
           B& backend,
           PipelineOptions options,
           S schedule = S{},
           T transfers = T{},
           E protocol = E{},
           P partitioner = P{})
      : backend_(backend),
        model_(std::move(model)),
        options_(complete_options(options, backend)),
        cpus_(plan_cpus(usable_cpus(), options_.devices, options_.optimizer_threads)),
        planner_(
            std::move(schedule), std::move(transfers), std::move(protocol), std::move(partitioner)),
        shapes_(model_, options_.capacity),
        plan_(make_pipeline_plan(
            model_, backend, planner_, shapes_.capacity(), options_, optimizer.state_arrays())),
        arena_(backend),
        parameters_(expect_all(), std::move(optimizer), store_options(), arena_),
        boundaries_(plan_.host, options_.micro_batches_per_round, arena_),
        actions_(model_, backend, options_.devices, plan_.stages.memory, parameters_, boundaries_),
        dispatcher_{actions_, parameters_, waits_for_all(options_)},
        call_program_(plan_.graph),
        step_program_(plan_.step),
        flush_program_(planner_.flush_graph(plan_.blocks)),
        meters_(options_.devices, options_.timeline_calls),
        executor_(backend, dispatcher_, options_.devices, cpus_) {
    if (options_.verify) {
      verify_graphs(planner_.evaluation_graph(
          plan_.blocks, plan_.stages, plan_options(options_), options_.micro_batches_per_round));
    }
    if (options_.loss_scale) {
      loss_scale_.emplace(*options_.loss_scale, planner_.protocol().staleness());
    }
    executor_.on_complete = [this](auto const& run, auto const& entries) {
      meters_.add(run, entries, call_program_);
    };
    for (std::size_t i = 0; i < calls_in_flight; ++i) {
      calls_.push_back(make_slot(call_program_, plan_.stages.train));
      take_staging(calls_.back().data(), options_.micro_batches_per_round * options_.rounds, 0);
      steps_.push_back(make_slot(step_program_, {}));
    }
    flush_ = make_slot(flush_program_, {});
    take_staging(
        evaluation_, options_.micro_batches_per_round, plan_.model.layers.back().results.bytes());
    evaluation_.stages = plan_.stages.evaluate;
    evaluation_.micro_batches_per_round = options_.micro_batches_per_round;
    evaluation_.evaluating = true;
  }

  Pipeline(Pipeline const&) = delete;
  Pipeline& operator=(Pipeline const&) = delete;

  /// Runs forward and backward of \p batch, micro_batches_per_round times rounds micro-batches, and
  /// adds to the gradients of this iteration. Returns the loss as soon as it is there; the backward
  /// goes on. The batch is copied. Where a backend wants it (see `warm_up_seconds` of \ref
  /// Backend), extents that come for the first time let it wait for all that is under way, and run
  /// every layer once with them: let few of them occur, or let them come early.
  /// \throws Error (invalid_argument) for a batch that does not fit the options, or for more calls
  ///         than `options.calls_per_step` without a step, (not_finite) for a loss that is NaN or
  ///         infinite, which stops the pipeline.
  double forward_backward(Batch const& batch) {
    executor_.rethrow();
    require_size(batch);
    require(pending_calls_ < options_.calls_per_step,
            Errc::invalid_argument,
            "there were as many calls since the last step as calls_per_step allows");
    auto const slices = slice_batch(batch, layout_at());
    auto const terms = count_loss_terms(model_, batch, shapes_.capacity().batch, slices);
    warm_up_new_shapes(batch);
    if (pending_calls_ == 0) {
      adapt_loss_scale();
    }
    auto& slot = calls_[calls_made_ % calls_in_flight];
    begin(slot);
    auto& call = slot.data();
    stage(batch, slices, 0, batch.size(), call);
    call.loss_scale = scale_;
    call.gradient_scale = gradient_scale_of(terms) * scale_;
    call.number = static_cast<std::uint32_t>(calls_made_);
    call.begins_gradients = pending_calls_ == 0;
    executor_.post(*slot.run);
    ++calls_made_;
    ++pending_calls_;
    return wait_for_loss(slot, "step " + std::to_string(steps_made_ + 1));
  }

  /// Updates the weights with the gradients of the calls since the last step, on the optimizer's
  /// worker; returns at once.
  /// \throws Error (invalid_argument) when there was no such call.
  void step() {
    executor_.rethrow();
    require(pending_calls_ > 0, Errc::invalid_argument, "a step follows at least one call");
    auto& slot = step_slot(steps_made_ + 1);
    begin(slot);
    slot.data().loss_scale = scale_;
    executor_.post(*slot.run);
    ++steps_made_;
    auto const stale = static_cast<std::uint64_t>(planner_.protocol().staleness());
    visible_version_ = std::max(visible_version_, steps_made_ - stale);
    pending_calls_ = 0;
  }

  /// Runs forward of \p batch, any number of micro-batches, with the newest weights: it
  /// synchronizes first, so that with staleness 1 the next iteration, too, begins with them.
  /// \throws Error as \ref forward_backward does.
  Evaluation evaluate(Batch const& batch) {
    auto const slices = slice_batch(batch, layout_at());
    auto const scale =
        gradient_scale_of(count_loss_terms(model_, batch, shapes_.capacity().batch, slices));
    synchronize();
    warm_up_new_shapes(batch);
    Evaluation evaluation;
    for (std::size_t first = 0; first < batch.size(); first += options_.micro_batches_per_round) {
      auto const count = std::min(options_.micro_batches_per_round, batch.size() - first);
      auto& slot = evaluation_slot(count);
      begin(slot, evaluation_);
      stage(batch, slices, first, count, slot.data());
      slot.data().gradient_scale = scale;
      executor_.post(*slot.run);
      evaluation.loss = wait_for_loss(slot, "an evaluation", evaluation.loss);
      for (std::size_t m = 0; m < count; ++m) {
        auto const& table = slot.data().shapes[m]->model.layers.back().results;
        auto const bytes = slot.data().results[m].first(table.bytes());
        evaluation.tables.push_back(table);
        evaluation.results.emplace_back(bytes.begin(), bytes.end());
      }
    }
    return evaluation;
  }

  /// Returns when all calls and steps are finished and the master copies hold the newest weights.
  void synchronize() {
    executor_.rethrow();
    if (copies_parameters(planner_.protocol())) {
      begin(flush_);
      executor_.post(*flush_.run);
    }
    executor_.synchronize();
    visible_version_ = steps_made_;
  }

  [[nodiscard]] PipelinePlan const& plan() const noexcept { return plan_; }
  [[nodiscard]] PipelineOptions const& options() const noexcept { return options_; }

  /// What has been done so far. It waits for the calls and steps under way.
  [[nodiscard]] Report report() {
    executor_.settle();
    Report report;
    report.calls = calls_made_;
    report.steps = parameters_.trains() ? parameters_.finished_steps() : steps_made_;
    report.skipped_steps = parameters_.skipped_steps();
    meters_.fill(report);
    report.device_bytes_peak = plan_.stages.memory.bytes;
    report.host_bytes_peak = arena_.bytes();
    return report;
  }

  /// Lets the report's figures of time begin with the next training call. It waits for nothing.
  void restart_report() noexcept { meters_.leave_out(calls_made_); }

  /// The measured timeline of the latest `options.timeline_calls` runs. It waits for those under
  /// way.
  [[nodiscard]] Timeline timeline() {
    executor_.synchronize();
    return meters_.timeline();
  }

  /// Calls \p f(name, shape, values) for every parameter, in layer order, shared ones once, with
  /// the weights as of the last step as fp32; they live until \p f returns. It waits for the step
  /// under way.
  /// \throws Error (aborted) when an error has stopped a step half way; so do the next two.
  template <class F>
  void for_each_parameter(F&& f) {
    settle_weights();
    for (std::size_t b = 0; b < plan_.blocks.blocks.size(); ++b) {
      auto const& block = plan_.blocks.blocks[b];
      for (std::size_t t = 0; t < block.specs.size(); ++t) {
        parameters_.with_weights(BlockId(b), t, [&](HostSpan<float const> values) {
          f(block.name + "." + block.specs[t].tensor.name, block.specs[t].tensor.shape, values);
        });
      }
    }
  }

  /// Copies parameter \p index of \p layer to \p values, of its size.
  /// \throws Error (invalid_argument) when there is no such parameter, or for another size.
  void read_parameter(LayerId layer, std::size_t index, HostSpan<float> values) {
    settle_weights();
    auto const place = parameter(layer, index, values.size());
    parameters_.with_weights(block_of(place), place.tensor, [&](HostSpan<float const> weights) {
      std::copy(weights.begin(), weights.end(), values.begin());
    });
  }

  /// Replaces parameter \p index of \p layer, its master copy too. It synchronizes first.
  /// \throws Error (invalid_argument) as \ref read_parameter does.
  void write_parameter(LayerId layer, std::size_t index, HostSpan<float const> values) {
    auto const place = parameter(layer, index, values.size());
    synchronize();
    settle_weights();
    parameters_.write_weights(block_of(place), place.tensor, values);
  }

 private:
  using Store = ParameterStore<B, O>;

  /// Runs of a program, and what they are about.
  struct Slot {
    std::unique_ptr<CallData> call;
    GraphRun<B>* run = nullptr;

    [[nodiscard]] CallData& data() const { return *call; }
  };
  struct EvaluationSlot {
    std::unique_ptr<GraphProgram> program;
    Slot slot;
  };

  using Devices = DeviceActions<Model, B, Store>;
  using Dispatcher = ActionDispatcher<Devices, Store>;

  [[nodiscard]] ParameterBlocks const& expect_all() {
    arena_.expect(total_bytes(plan_.ledger, LedgerLine::Space::host));
    return plan_.blocks;
  }
  [[nodiscard]] typename Store::Options store_options() const {
    auto const& protocol = planner_.protocol();
    return {protocol.master_copies(),
            protocol.gradient_buffers(),
            copies_parameters(protocol),
            options_.state_type,
            scaler_options(options_),
            options_.seed,
            cpus_.optimizer_threads,
            cpus_.optimizer};
  }
  /// \throws Error (unsafe_graph) when a policy leaves an order to chance.
  void verify_graphs(ActionGraph const& evaluation) const {
    require_safe(training_sequence({plan_.graph,
                                    step_program_.graph(),
                                    flush_program_.graph(),
                                    evaluation,
                                    std::min<std::size_t>(options_.calls_per_step, 2)},
                                   options_.devices));
  }

  /// Begins a run of \p slot, about \p call or what the slot is about anyway.
  void begin(Slot const& slot) { begin(slot, slot.data()); }
  void begin(Slot const& slot, CallData const& call) {
    executor_.begin(*slot.run, static_cast<std::size_t>(steps_made_ + 1));
    if (&call != &slot.data()) {
      slot.data() = call;
    }
    slot.data().iteration = steps_made_ + 1;
    slot.data().version = visible_version_;
  }
  [[nodiscard]] Slot& step_slot(std::uint64_t step) { return steps_[step % calls_in_flight]; }

  /// Tells the loss scale which steps have overflowed, and takes its value for this iteration.
  void adapt_loss_scale() {
    if (!loss_scale_) {
      return;
    }
    auto const newest = loss_scale_->newest_step(static_cast<std::size_t>(steps_made_ + 1));
    while (loss_scale_->recorded() < newest) {
      auto const step = loss_scale_->recorded() + 1;
      auto const& slot = step_slot(step);
      if (slot.run->in_flight() && slot.data().iteration == step) {
        for (auto const id : slot.run->program().norms()) {
          executor_.wait(*slot.run, id);
        }
      }
      try {
        loss_scale_->record(parameters_.has_overflowed(step));
      } catch (...) {
        executor_.fail(std::current_exception());
        executor_.rethrow();
      }
    }
    scale_ = loss_scale_->value();
  }

  /// Lets devices see extents that are new to them, while nothing else is under way.
  void warm_up_new_shapes(Batch const& batch) {
    if constexpr (requires { B::warm_up_seconds; }) {
      for (std::size_t m = 0; m < batch.size(); ++m) {
        if (auto const shape = batch.shape(m); !met_.contains(shape)) {
          executor_.synchronize();
          warm_up(model_, backend_, shapes_.at(shape).model, options_.devices, actions_.arenas());
          met_.insert(shape);
        }
      }
    }
  }

  /// Waits until no step is under way. \throws Error (aborted) when one will never be finished.
  void settle_weights() {
    executor_.settle();
    require(!parameters_.is_torn(),
            Errc::aborted,
            "an error has stopped an optimizer step half way, so that the weights are of no step; "
            "with StepStart::all_blocks this cannot happen");
  }

  [[nodiscard]] auto layout_at() {
    return [this](BatchShape shape) -> BatchLayout const& { return shapes_.at(shape).batch; };
  }

  /// Runs of \p program, one at a time.
  [[nodiscard]] Slot make_slot(GraphProgram const& program, std::span<StageLayout const> stages) {
    Slot slot{std::make_unique<CallData>(), nullptr};
    slot.data().stages = stages;
    slot.data().micro_batches_per_round = options_.micro_batches_per_round;
    slot.data().seed = options_.seed;
    slot.run = &executor_.make_run(program, slot.data());
    return slot;
  }

  /// Host memory that copies read and write, for \p micro_batches micro-batches.
  void take_staging(CallData& call, std::size_t micro_batches, Bytes result_bytes) {
    for (std::size_t m = 0; m < micro_batches; ++m) {
      call.batch.push_back(arena_.take(shapes_.capacity().batch.tensors.bytes()));
      call.losses.push_back(arena_.take(sizeof(double)));
      call.results.push_back(arena_.take(result_bytes));
    }
  }

  /// The slot of evaluations of \p micro_batches micro-batches, made when it is first needed. All
  /// of them share the staging, for evaluations do not overlap.
  [[nodiscard]] Slot& evaluation_slot(std::size_t micro_batches) {
    auto const found = evaluations_.find(micro_batches);
    if (found != evaluations_.end()) {
      return found->second.slot;
    }
    auto graph = planner_.evaluation_graph(
        plan_.blocks, plan_.stages, plan_options(options_), micro_batches);
    if (options_.verify) {
      verify_graphs(graph);
    }
    auto& made = evaluations_[micro_batches];
    try {
      made.program = std::make_unique<GraphProgram>(std::move(graph));
      made.slot = make_slot(*made.program, plan_.stages.evaluate);
    } catch (...) {
      evaluations_.erase(micro_batches);
      throw;
    }
    return made.slot;
  }

  void require_size(Batch const& batch) const {
    auto const wanted = options_.micro_batches_per_round * options_.rounds;
    if (batch.size() != wanted) {
      throw Error(Errc::invalid_argument,
                  "the batch has " + std::to_string(batch.size()) +
                      " micro-batches; the pipeline runs " + std::to_string(wanted) +
                      " a call: " + std::to_string(options_.micro_batches_per_round) +
                      " in each of " + std::to_string(options_.rounds) + " rounds");
    }
  }

  /// Copies micro-batches [first, first + count) to the call's staging.
  void stage(Batch const& batch,
             BatchSlices const& slices,
             std::size_t first,
             std::size_t count,
             CallData& call) {
    call.shapes.clear();
    for (std::size_t m = 0; m < count; ++m) {
      auto const& shaped = shapes_.at(batch.shape(first + m));
      call.shapes.push_back(&shaped);
      stage_tensors(slices[first + m], shaped.batch.tensors, call.batch[m]);
    }
  }

  /// Adds the micro-batches' losses to \p sum, in their order, and takes the loss scale away.
  double wait_for_loss(Slot& slot, std::string const& where, double sum = 0) {
    for (auto const id : slot.run->program().losses()) {
      executor_.collect_complete();  // there is time for it now, and none before the next call
      executor_.wait(*slot.run, id);
    }
    for (std::size_t m = 0; m < slot.data().shapes.size(); ++m) {
      sum += *reinterpret_cast<double const*>(slot.data().losses[m].data());
    }
    sum /= slot.data().loss_scale;
    if (!std::isfinite(sum)) {
      for (auto const& step : steps_) {  // they need nothing of this call
        if (step.run->in_flight()) {
          executor_.wait_complete(*step.run);
        }
      }
      auto const stage = plan_.stages.partition.forward.size();
      executor_.fail(std::make_exception_ptr(
          Error(Errc::not_finite,
                "the loss of " + where + " is not finite: stage " + std::to_string(stage) + ", " +
                    plan_.model.name_of(plan_.model.size() - 1))));
      executor_.rethrow();
    }
    return sum;
  }

  [[nodiscard]] BlockId block_of(ParameterPlace place) const {
    return plan_.blocks.use(place.use).block;
  }

  [[nodiscard]] ParameterPlace parameter(LayerId layer, std::size_t index, std::size_t size) const {
    require(layer.valid() && layer.index() < plan_.model.size() &&
                index < plan_.blocks.places[layer.index()].size(),
            Errc::invalid_argument,
            "there is no such parameter");
    auto const place = plan_.blocks.places[layer.index()][index];
    require(plan_.blocks.block_of(place.use).master[place.tensor].shape.size() == size,
            Errc::invalid_argument,
            "the values of a parameter are as many as its elements");
    return place;
  }

  B& backend_;
  Model model_;
  PipelineOptions options_;
  CpuPlan cpus_;
  Planner<S, T, E, P> planner_;
  ShapeCache<Model> shapes_;
  PipelinePlan plan_;
  HostArena<B> arena_;
  Store parameters_;
  BoundaryStore<B> boundaries_;
  Devices actions_;
  Dispatcher dispatcher_;
  GraphProgram call_program_;
  GraphProgram step_program_;
  GraphProgram flush_program_;
  RunMeters meters_;
  std::set<BatchShape> met_{options_.capacity};  // extents that devices have seen
  CallData evaluation_;                          // what all evaluations have in common
  std::vector<Slot> calls_;
  std::vector<Slot> steps_;
  Slot flush_;
  std::map<std::size_t, EvaluationSlot> evaluations_;
  std::size_t calls_made_ = 0;
  std::uint64_t steps_made_ = 0;
  std::uint64_t visible_version_ = 0;  // the step whose weights the next call reads
  std::size_t pending_calls_ = 0;      // since the last step
  std::optional<DynamicLossScale> loss_scale_;
  double scale_ = 1;                  // of the iteration
  Executor<B, Dispatcher> executor_;  // last: its threads use all of the above
};

}  // namespace roundpipe
