// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The optimizer's host lane: gradient norms, and steps block by block.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/hosts/gather_parts.hpp>
#include <roundpipe/model/block_shards.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/optim/clipping.hpp>
#include <roundpipe/optim/optimizer_needs.hpp>
#include <roundpipe/optim/step_check.hpp>
#include <roundpipe/optim/update_pass.hpp>
#include <roundpipe/runtime/execute/host_lane_work.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/state/gradient_scaler.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/rounding_key.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>
#include <roundpipe/runtime/state/whole_updates.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

/// What \ref ParameterUpdater has to know besides the optimizer.
struct UpdaterOptions {
  GradientScalerOptions scaling{};
  bool writes_masters = true;   ///< Whether updates, not P copies, write master copies.
  bool finishes_steps = false;  ///< Whether a step that has begun has all its gradients.
  std::uint64_t seed = 0;       ///< Of stochastic rounding.
  AnyProcessGroup group{};      ///< The ranks that share blocks, if any do.
};

static_assert(shard_grain % norm_block_size == 0);

/// Updates blocks with the optimizer's rule. The lane finishes a step that has begun, if that is
/// possible, also after an error.
template <Optimizer O>
class ParameterUpdater final : public HostLaneWork {
 public:
  /// All references must outlive this. Takes scratch with \p take, which owns it. The lane's thread
  /// is the first of \p pool's.
  ParameterUpdater(ParameterMemory const& memory,
                   StepProgress& progress,
                   O optimizer,
                   TakeHostMemory const& take,
                   UpdaterOptions options,
                   WorkerPool& pool)
      : HostLaneWork({LaneKind::optimizer, /*outlives_errors=*/true, /*leads_threads=*/true}),
        memory_(memory),
        progress_(progress),
        optimizer_(std::move(optimizer)),
        options_(std::move(options)),
        pool_(pool),
        scaler_(memory.blocks(), options_.scaling),
        whole_(memory.blocks(), memory.state_type(), needs_of(optimizer_)),
        scratch_(take(whole_.bytes())) {}

  void run(RunState const& run, ActionId id) override {
    auto const& action = run.program()[id];
    auto const& call = run.call();
    if (action.kind == ActionKind::gradient_norm) {
      measure_gradient(action.block, call.iteration);
      scaler_.require_finite(action.block, call.iteration);  // before the step changes anything
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

  /// Lets the training go on after an update that has failed half way: somebody has put back all
  /// that it may have changed.
  void restore() noexcept { is_updating_ = false; }

  /// Measures the block's part of the global norm of step \p step. Where ranks share the block, an
  /// operation of all of them: each sums the squares of its shard by norm block, as one process
  /// would, and all add up the sums of all.
  /// \throws Error as the group does.
  void measure_gradient(BlockId block, std::uint64_t step) {
    auto const& described = memory_.blocks().blocks[block.index()];
    std::vector<std::size_t> firsts{0};  // by tensor: its first norm block
    for (auto const& spec : described.master) {
      firsts.push_back(firsts.back() + norm_blocks(spec.shape.size()));
    }
    norm_sums_.resize(firsts.back());
    HostSpan<double> const sums(norm_sums_);
    for (std::size_t t = 0; t < memory_.tensors(block); ++t) {
      auto const gradient = memory_.gradient(block, t, step);
      auto const of_tensor = sums.subspan(firsts[t] + memory_.own(block, t).begin / norm_block_size,
                                          norm_blocks(gradient.size));
      pool_.for_each_part(gradient.size, host_work_grain, [&](std::size_t begin, std::size_t end) {
        sum_squares_by_block(gradient.part(begin, end),
                             of_tensor.subspan(begin / norm_block_size, norm_blocks(end - begin)));
      });
    }
    if (described.is_sharded()) {
      auto const place = [&](BlockCut cut) {
        return firsts[cut.tensor] + cut.element / norm_block_size;
      };
      std::vector<HostBytes> parts;
      for (auto const& shard : described.shards) {
        auto const begin = place(shard.begin);
        parts.push_back(std::as_writable_bytes(sums.subspan(begin, place(shard.end) - begin)));
      }
      gather_parts(options_.group, GroupChannel::norms, parts);
    }
    double sum = 0;
    for (std::size_t t = 0; t < memory_.tensors(block); ++t) {
      sum += sum_in_order(sums.subspan(firsts[t], firsts[t + 1] - firsts[t]));
    }
    scaler_.add(block, step, sum);
  }

  /// Step \p step (from 1) of a block: updates the optimizer copy and, unless P copies do, writes
  /// the master copy. \p loss_scale made the gradients. A step whose gradients overflowed leaves
  /// the weights as they are. Waits for those who read the block's parameters.
  /// \throws Error (not_finite) when the norm is not finite and no loss scale is to blame,
  ///         (aborted) when the step was called off.
  void update(BlockId block, std::uint64_t step, double loss_scale) {
    auto const factor = scaler_.factor(step, loss_scale);
    memory_.readers()->wait(block);
    require(progress_.begin(step), Errc::aborted, "an error has called the step off");
    progress_.begin_block();
    auto const whole = whole_.of(block);
    is_updating_ = true;
    for (std::size_t t = 0; t < memory_.tensors(block); ++t) {
      auto const is_tensor = [&](auto const& parameter) { return parameter.tensor == t; };
      if (std::none_of(whole.begin(), whole.end(), is_tensor)) {
        update_parts(block, t, step, factor);
      }
    }
    if (!whole.empty()) {
      update_wholes(block, step, factor);
    }
    is_updating_ = false;
    progress_.end_block(step, factor.skips);
  }

  /// Asks the optimizer for all of step \p step, and changes nothing. Any thread may call it.
  /// \throws Error as \ref roundpipe::check_step does.
  void check_step(std::uint64_t step) const {
    auto const& blocks = memory_.blocks();
    blocks.for_each([&](BlockTensor parameter) {
      if (!blocks.blocks[parameter.block.index()].frozen) {
        auto const name = blocks.name_of(parameter);
        roundpipe::check_step(optimizer_, blocks.info_of(parameter, name), step);
      }
    });
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
  /// All threads share the parameter.
  void update_parts(BlockId block, std::size_t t, std::uint64_t step, StepFactor factor) {
    auto const size = memory_.gradient(block, t, step).size;
    pool_.for_each_part(size, host_work_grain, [&](std::size_t begin, std::size_t end) {
      update_part(block, t, step, factor, begin, end, [&](auto const&... arguments) {
        update_pass(optimizer_, arguments...);
      });
    });
  }

  /// Each thread takes the next parameter.
  void update_wholes(BlockId block, std::uint64_t step, StepFactor factor) {
    auto const whole = whole_.of(block);
    HostSpan<float> const scratch(reinterpret_cast<float*>(scratch_.data()),
                                  scratch_.size() / sizeof(float));
    std::atomic<std::size_t> next = 0;
    pool_.for_each_part(std::min(pool_.size(), whole.size()), 1, [&](std::size_t, std::size_t) {
      for (auto i = next++; i < whole.size(); i = next++) {
        auto const [t, first, floats] = whole[i];
        auto const size = memory_.gradient(block, t, step).size;
        auto const room = scratch.subspan(first, floats);
        update_part(block, t, step, factor, 0, size, [&](auto const&... arguments) {
          update_whole(optimizer_, arguments..., room);
        });
      }
    });
  }

  /// Calls `update(context, arrays, rounding)` for elements [\p begin, \p end) of the own part of a
  /// parameter, unless the step leaves it as it is.
  template <class Update>
  void update_part(BlockId block,
                   std::size_t t,
                   std::uint64_t step,
                   StepFactor factor,
                   std::size_t begin,
                   std::size_t end,
                   Update const& update) const {
    auto const& blocks = memory_.blocks();
    auto const name = blocks.name_of({block, t});
    auto const first = memory_.own(block, t).begin + begin;
    UpdateContext const context{step, factor.gradient, blocks.info_of({block, t}, name), first};
    auto const weights = memory_.weights(block, t, step - 1);
    auto const master = options_.writes_masters ? memory_.own_master(block, t, step) : HostArray{};
    std::array<HostArray, max_update_states> states;
    for (std::size_t s = 0; s < memory_.state_arrays(); ++s) {
      states[s] = memory_.state(block, t, s).part(begin, end);
    }
    UpdateArrays arrays{weights.part(begin, end),
                        memory_.gradient(block, t, step).part(begin, end),
                        {states.data(), memory_.state_arrays()},
                        master.part(begin, end)};
    // f32 weights in one master copy that go to the other.
    bool const moves = !memory_.has_optimizer_copy(block) && weights.dtype == DType::f32 &&
                       weights.data != master.data;
    bool const rests = factor.skips || freezes(optimizer_, context.parameter, step);
    if (!rests && moves) {
      copy_pass(arrays);  // f32 is updated in place, and uploads may still read the old copy
      arrays.weights = arrays.master;
    }
    if (!rests) {
      update(context, arrays, rounding_key(options_.seed, step, block, t));
    } else if (arrays.master.present()) {
      copy_pass(arrays);
    }
  }

  ParameterMemory const& memory_;
  StepProgress& progress_;
  O optimizer_;
  UpdaterOptions options_;
  WorkerPool& pool_;
  GradientScaler scaler_;
  WholeUpdates whole_;
  HostBytes scratch_;              // of whole updates
  std::vector<double> norm_sums_;  // of one block's gradient, by norm block
  bool is_updating_ = false;       // or has failed to
};

}  // namespace roundpipe
