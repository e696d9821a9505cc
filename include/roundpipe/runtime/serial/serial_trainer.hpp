// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The oracle: the same training as the pipeline's, to the bit, in a plain loop.

#include <roundpipe/backend/host_stream.hpp>
#include <roundpipe/concepts/requirements.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/runtime/evaluation.hpp>
#include <roundpipe/runtime/serial/serial_options.hpp>
#include <roundpipe/runtime/serial/serial_parameters.hpp>
#include <roundpipe/runtime/serial/serial_passes.hpp>
#include <roundpipe/runtime/state/batch_staging.hpp>
#include <roundpipe/runtime/state/gradient_scaler.hpp>
#include <roundpipe/runtime/state/loss_scale_control.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/system/aligned_memory.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roundpipe {

/// \brief Trains a model with no stages, transfers or threads.
///
/// It keeps the order of sums that `design.md` lays down: a round's gradients of each use of a
/// block accumulate over its micro-batches in fp32, are rounded once to the parameter's type, and
/// are added by round, then by layer, to sums of the state type. Its weights therefore equal the
/// pipeline's bit for bit.
/// \tparam M a \ref Model on \p Stream. \tparam O an \ref Optimizer. \tparam Stream runs what
/// layers enqueue at once, on this thread, on host memory.
template <class M, class O, class Stream = HostStream>
class SerialTrainer {
  static_assert(detail::check_optimizer<O>());
  static_assert(detail::check_model<M, Stream>());

 public:
  /// \throws Error (invalid_argument) for options out of their domain, or an optimizer that breaks
  ///         rule 1 of its concept; what \ref describe and
  ///         \ref form_blocks throw.
  SerialTrainer(M model, O optimizer, SerialOptions options, Stream stream = {})
      : model_(std::move(model)),
        optimizer_(std::move(optimizer)),
        options_(checked(options)),
        shapes_(model_, options_.capacity),
        parameters_(form_blocks(shapes_.capacity().model, false, options_.state_type),
                    state_arrays(optimizer_),
                    options_.state_type,
                    options_.seed),
        passes_(model_,
                shapes_.capacity().model,
                std::move(stream),
                finite_passes(options_.check_finite, options_.loss_scale.has_value())),
        loss_scale_(options_.loss_scale, options_.staleness) {}

  /// Adds the gradients of one call. \returns its loss.
  /// \throws Error (invalid_argument) when \p batch does not have micro-batches x rounds
  ///         micro-batches that fit into the capacity, or not the tensors that layers read;
  ///         (not_finite) when a micro-batch's loss is NaN or infinite: the iteration's gradients
  ///         are dropped; where a layer throws: what that says, behind the layer's name.
  double forward_backward(Batch const& batch) {
    if (batch.size() != options_.micro_batches_per_round * options_.rounds) {
      throw Error(Errc::invalid_argument,
                  "a call has " + std::to_string(options_.micro_batches_per_round) + " x " +
                      std::to_string(options_.rounds) +
                      " micro-batches (per round x rounds), the batch " +
                      std::to_string(batch.size()));
    }
    auto const slices = slice(batch);
    auto call = LayerCall{};
    auto overwrites = !std::exchange(has_gradients_, false);
    if (overwrites) {
      loss_scale_.adapt(steps_ + 1, [&](std::uint64_t step) { return overflows_[step - 1]; });
    }
    call.gradient_scale = scale(batch, slices) * loss_scale_.value();
    call.random.seed = options_.seed;
    call.random.step = calls_++;
    call.saving = true;
    double loss = 0;
    for (std::size_t round = 0; round < options_.rounds; ++round) {
      parameters_.begin_round();
      for (std::size_t i = 0; i < options_.micro_batches_per_round; ++i) {
        auto const m = round * options_.micro_batches_per_round + i;
        auto const micro_call = at(call, batch.shape(m), m);
        auto const& shaped = shapes_.at(batch.shape(m));
        static_cast<void>(passes_.forward(shaped, parameters_, micro_call, slices[m], {}));
        auto const micro_loss = passes_.backward(shaped.model, parameters_, micro_call);
        require_finite(micro_loss, "the loss of micro-batch " + std::to_string(m));
        loss += micro_loss;
      }
      parameters_.end_round(overwrites, steps_ + 1);
      overwrites = false;
    }
    has_gradients_ = true;
    return loss / loss_scale_.value();
  }

  /// One optimizer step with the gradients of all calls since the last one.
  /// \throws Error (invalid_argument) when there was no call; where the optimizer refuses the step;
  ///         (not_finite) when the gradient's norm is NaN or infinite, which is looked at when
  ///         clipping is on.
  void step() {
    require(has_gradients_,
            Errc::invalid_argument,
            "step() needs a forward_backward() since the step before");
    parameters_.check_step(optimizer_, steps_ + 1);
    has_gradients_ = false;  // the step takes them
    GradientScalerOptions const verdict{options_.clip_norm, options_.loss_scale.has_value()};
    auto const squares = verdict.measures() ? parameters_.gradient_sum_of_squares() : 0.0;
    auto const factor = step_factor(verdict, steps_ + 1, squares, loss_scale_.value());
    if (options_.staleness == 1) {
      synchronize();  // the weights of the step before reach the master copy only now
    }
    ++steps_;
    overflows_.push_back(factor.skips);
    skipped_steps_ += factor.skips ? 1 : 0;
    if (!factor.skips) {
      parameters_.update(optimizer_, steps_, factor.gradient);
    }
    if (options_.staleness == 0) {
      synchronize();
    }
  }

  /// Brings the master copy up to the finished steps.
  void synchronize() {
    parameters_.copy_parameters();
    visible_step_ = steps_;
  }

  /// The loss, without dropout and with the newest weights, of any number of micro-batches, and
  /// the last layer's results. The training goes on as if there had been no evaluation.
  /// \throws Error (invalid_argument) as \ref forward_backward does.
  [[nodiscard]] Evaluation evaluate(Batch const& batch) {
    auto const slices = slice(batch);
    auto call = LayerCall{};
    call.gradient_scale = scale(batch, slices);
    call.random.seed = options_.seed;
    call.evaluating = true;
    Evaluation evaluation;
    evaluation.step = steps_;
    parameters_.with_newest([&] {
      for (std::size_t m = 0; m < batch.size(); ++m) {
        auto const& shaped = shapes_.at(batch.shape(m));
        auto const& table = shaped.model.layers.back().results;
        AlignedMemory const results(table.bytes());
        evaluation.loss += passes_.forward(shaped,
                                           parameters_,
                                           at(call, batch.shape(m), m),
                                           slices[m],
                                           views(table, results.device_bytes()));
        evaluation.tables.push_back(table);
        evaluation.results.emplace_back(results.bytes().begin(), results.bytes().end());
      }
    });
    return evaluation;
  }

  /// What \ref Pipeline::state returns, but with weights and optimizer states in f32 throughout.
  /// \throws Error (invalid_argument) when there were calls since the last step.
  [[nodiscard]] TrainingState state() const {
    require(!has_gradients_,
            Errc::invalid_argument,
            "a training has a state after a step, and there were calls since the last one");
    TrainingPosition position{.step = steps_,
                              .skipped_steps = skipped_steps_,
                              .visible_step = visible_step_,
                              .calls = calls_,
                              .seed = options_.seed,
                              .loss_scale = loss_scale_.state()};
    for_each_late_verdict(
        position, [&](std::uint64_t step, bool& overflowed) { overflowed = overflows_[step - 1]; });
    return {position, parameters_.state()};
  }

  /// Goes on from \p state as \ref Pipeline::restore does.
  /// \throws Error (invalid_argument) likewise.
  void restore(TrainingState const& state) {
    auto const position = continued_position(state.position, options_.seed, options_.staleness);
    auto const parameters = match_parameters(parameters_.state(), state, position);
    loss_scale_.restore(position.loss_scale);
    parameters_.restore(parameters, position);
    calls_ = static_cast<std::uint32_t>(position.calls);
    steps_ = position.step;
    skipped_steps_ = position.skipped_steps;
    visible_step_ = position.visible_step;
    has_gradients_ = false;
    overflows_.assign(static_cast<std::size_t>(steps_), false);
    for_each_late_verdict(
        position, [&](std::uint64_t step, bool overflowed) { overflows_[step - 1] = overflowed; });
  }

  /// Calls `f(name, shape, weights)` with every tensor of the optimizer copy, shared ones once.
  template <class F>
  void for_each_parameter(F&& f) const {
    auto const& blocks = parameters_.blocks();
    blocks.for_each([&](BlockTensor parameter) {
      f(blocks.name_of(parameter), blocks.tensor(parameter).shape, parameters_.weights(parameter));
    });
  }

  /// Copies parameter \p name, as the last step left it, to \p values.
  /// \throws Error (invalid_argument) when there is no such parameter, or one of another size.
  void read_parameter(std::string_view name, HostSpan<float> values) const {
    auto const weights = parameters_.weights(parameters_.find(name, values.size()));
    std::copy(weights.begin(), weights.end(), values.begin());
  }

  /// Overwrites parameter \p name, in both copies, from \p values.
  /// \throws Error (invalid_argument) as \ref read_parameter does.
  void write_parameter(std::string_view name, HostSpan<float const> values) {
    parameters_.write_weights(parameters_.find(name, values.size()), values);
    synchronize();
  }

  /// Calls \p f with all \ref ParameterArrays as \ref Pipeline::overwrite_parameters does.
  template <class F>
  void overwrite_parameters(F&& f) {
    parameters_.overwrite(std::forward<F>(f));
    synchronize();
  }

  /// Copies the gradient of parameter \p name to \p values: of the calls since the last step,
  /// without their loss scale, not clipped.
  /// \throws Error (invalid_argument) as \ref read_parameter does, and when there is no gradient.
  void read_gradient(std::string_view name, HostSpan<float> values) const {
    auto const gradient = parameters_.gradient(parameters_.find(name, values.size()));
    require(has_gradients_, Errc::invalid_argument, "there was no call since the last step");
    auto const factor = static_cast<float>(1 / loss_scale_.value());
    std::transform(gradient.begin(), gradient.end(), values.begin(), [&](float value) {
      return factor * value;
    });
  }

  /// The three above for parameter \p index of \p layer.
  void read_parameter(LayerId layer, std::size_t index, HostSpan<float> values) const {
    read_parameter(parameters_.blocks().name_of(layer, index), values);
  }
  void write_parameter(LayerId layer, std::size_t index, HostSpan<float const> values) {
    write_parameter(parameters_.blocks().name_of(layer, index), values);
  }
  void read_gradient(LayerId layer, std::size_t index, HostSpan<float> values) const {
    read_gradient(parameters_.blocks().name_of(layer, index), values);
  }

 private:
  [[nodiscard]] BatchSlices slice(Batch const& batch) {
    return slice_batch(
        batch, [&](BatchShape shape) -> BatchLayout const& { return shapes_.at(shape).batch; });
  }
  [[nodiscard]] double scale(Batch const& batch, BatchSlices const& slices) const {
    return gradient_scale_of(count_loss_terms(model_, batch, shapes_.capacity().batch, slices));
  }
  void require_finite(double value, std::string const& what) const {
    if (!std::isfinite(value)) {
      throw Error(Errc::not_finite,
                  what + " is " + std::to_string(value) + " in step " + std::to_string(steps_ + 1));
    }
  }

  /// The call as micro-batch \p m sees it.
  [[nodiscard]] static LayerCall at(LayerCall call, BatchShape shape, std::size_t m) {
    call.shape = shape;
    call.random.micro_batch = static_cast<std::uint32_t>(m);
    return call;
  }

  M model_;
  O optimizer_;
  SerialOptions options_;
  ShapeCache<M> shapes_;
  SerialParameters parameters_;
  SerialPasses<M, Stream> passes_;
  std::uint32_t calls_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t visible_step_ = 0;  // whose weights the master copy holds
  std::uint64_t skipped_steps_ = 0;
  LossScaleControl loss_scale_;
  std::vector<bool> overflows_;  // by step
  bool has_gradients_ = false;   // of calls since the last step
};

}  // namespace roundpipe
