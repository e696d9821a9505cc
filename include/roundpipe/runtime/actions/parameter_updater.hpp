// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The optimizer's host lane: gradient norms, and steps block by block.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/optim/clipping.hpp>
#include <roundpipe/optim/update_pass.hpp>
#include <roundpipe/runtime/execute/host_lane_work.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/state/gradient_scaler.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/rounding_key.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace roundpipe {

/// What \ref ParameterUpdater has to know besides the optimizer.
struct UpdaterOptions {
  GradientScalerOptions scaling{};
  bool writes_masters = true;   ///< Whether updates, not P copies, write master copies.
  bool finishes_steps = false;  ///< Whether a step that has begun has all its gradients.
  std::uint64_t seed = 0;       ///< Of stochastic rounding.
};

/// Updates blocks with the optimizer's rule. The lane finishes a step that has begun, if that is
/// possible, also after an error.
template <Optimizer O>
class ParameterUpdater final : public HostLaneWork {
 public:
  /// All references must outlive this. The lane's thread is the first of \p pool's.
  /// \throws Error (unsupported) for more states than \ref max_update_states.
  ParameterUpdater(ParameterMemory const& memory,
                   StepProgress& progress,
                   O optimizer,
                   UpdaterOptions options,
                   WorkerPool& pool)
      : HostLaneWork({LaneKind::optimizer, /*outlives_errors=*/true, /*leads_threads=*/true}),
        memory_(memory),
        progress_(progress),
        optimizer_(std::move(optimizer)),
        options_(options),
        pool_(pool),
        scaler_(memory.blocks(), options.scaling) {
    require(optimizer_.state_arrays() <= max_update_states,
            Errc::unsupported,
            "an optimizer has at most 8 state arrays");
  }

  void run(RunState const& run, ActionId id) override {
    auto const& action = run.program()[id];
    auto const& call = run.call();
    if (action.kind == ActionKind::gradient_norm) {
      measure_gradient(action.block, call.iteration);
      if (id == run.program().norms().back()) {  // refuses the step before it changes anything
        (void)scaler_.factor(call.iteration, call.loss_scale);
      }
    } else {
      update(action.block, call.iteration, call.loss_scale);
    }
  }

  /// Finishes a step that has begun before action \p id, if all its gradients are there and no
  /// update has failed half way. Else calls it off.
  void abandon(RunState const& run, ActionId id) override {
    auto const& actions = run.program().graph().actions;
    auto const& call = run.call();
    auto const has_begun = progress_.has_begun_or_call_off(call.iteration);
    if (!has_begun || !options_.finishes_steps || is_updating_) {
      return;
    }
    progress_.wait_copied();  // else an update could overtake the P copy of its block
    for (auto i = id.index(); i < actions.size(); ++i) {
      if (actions[i].kind == ActionKind::optimizer_step) {
        update(actions[i].block, call.iteration, call.loss_scale);
      }
    }
  }

  /// Measures the block's part of the global norm of step \p step.
  void measure_gradient(BlockId block, std::uint64_t step) {
    double sum = 0;
    for (std::size_t t = 0; t < memory_.tensors(block); ++t) {
      auto const gradient = memory_.gradient(block, t, step);
      norm_sums_.resize(norm_blocks(gradient.size));
      HostSpan<double> const sums(norm_sums_);
      pool_.for_each_part(gradient.size, host_work_grain, [&](std::size_t begin, std::size_t end) {
        sum_squares_by_block(gradient.part(begin, end),
                             sums.subspan(begin / norm_block_size, norm_blocks(end - begin)));
      });
      sum += sum_in_order(sums);
    }
    scaler_.add(block, step, sum);
  }

  /// Step \p step (from 1) of a block: updates the optimizer copy and, unless P copies do, writes
  /// the master copy. \p loss_scale made the gradients. A step whose gradients overflowed leaves
  /// the weights as they are.
  /// \throws Error (not_finite) when the norm is not finite and no loss scale is to blame,
  /// (aborted)
  ///         when the step was called off.
  void update(BlockId block, std::uint64_t step, double loss_scale) {
    auto const factor = scaler_.factor(step, loss_scale);
    require(progress_.begin(step), Errc::aborted, "an error has called the step off");
    progress_.begin_block();
    is_updating_ = true;
    for (std::size_t t = 0; t < memory_.tensors(block); ++t) {
      update_tensor(block, t, step, factor);
    }
    is_updating_ = false;
    progress_.end_block(step, factor.skips);
  }

  /// Whether step \p step, one of the last two that were measured, has overflowed.
  [[nodiscard]] bool has_overflowed(std::uint64_t step) const {
    return scaler_.has_overflowed(step);
  }
  /// Says the same of a step that was measured elsewhere.
  void set_overflowed(std::uint64_t step, bool overflowed) noexcept {
    scaler_.set_overflowed(step, overflowed);
  }

 private:
  void update_tensor(BlockId block, std::size_t t, std::uint64_t step, StepFactor factor) {
    auto const weights = memory_.weights(block, t, step - 1);
    auto const gradient = memory_.gradient(block, t, step);
    auto const master = options_.writes_masters ? memory_.master(block, t, step) : HostArray{};
    UpdateContext const context{
        step, factor.gradient, memory_.blocks().blocks[block.index()].specs[t].decay};
    auto const key = rounding_key(options_.seed, step, block, t);
    // f32 weights in one master copy that go to the other.
    bool const moves = !memory_.has_optimizer_copy(block) && weights.dtype == DType::f32 &&
                       weights.data != master.data;
    pool_.for_each_part(weights.size, host_work_grain, [&](std::size_t begin, std::size_t end) {
      std::array<HostArray, max_update_states> states;
      for (std::size_t s = 0; s < memory_.state_arrays(); ++s) {
        states[s] = memory_.state(block, t, s).part(begin, end);
      }
      UpdateArrays shard{weights.part(begin, end),
                         gradient.part(begin, end),
                         {states.data(), memory_.state_arrays()},
                         master.part(begin, end)};
      if (!factor.skips && moves) {
        copy_pass(shard);  // f32 is updated in place, and uploads may still read the old copy
        shard.weights = shard.master;
      }
      if (!factor.skips) {
        update_pass(optimizer_, context, shard, key, begin);
      } else if (shard.master.present()) {
        copy_pass(shard);
      }
    });
  }

  ParameterMemory const& memory_;
  StepProgress& progress_;
  O optimizer_;
  UpdaterOptions options_;
  WorkerPool& pool_;
  GradientScaler scaler_;
  std::vector<double> norm_sums_;  // of one tensor's gradient, by norm block
  bool is_updating_ = false;       // or has failed to
};

}  // namespace roundpipe
