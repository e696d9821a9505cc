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
#include <roundpipe/optim/loss_scale.hpp>
#include <roundpipe/runtime/evaluation.hpp>
#include <roundpipe/runtime/serial/serial_parameters.hpp>
#include <roundpipe/runtime/serial/serial_passes.hpp>
#include <roundpipe/runtime/state/batch_staging.hpp>
#include <roundpipe/runtime/state/gradient_scaler.hpp>
#include <roundpipe/system/aligned_memory.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// The size and the rules of a serial training; what the pipeline has in common with it.
struct SerialOptions {
  BatchShape capacity{};                    ///< What micro-batches fit into.
  std::size_t micro_batches_per_round = 1;  ///< M_R: of a round.
  std::size_t rounds = 1;                   ///< R: of a call.
  double clip_norm = 0;  ///< The largest norm of all gradients together; 0: not clipped.
  std::uint64_t seed = 0;
  int staleness = 0;  ///< 1: iteration T+1 computes with the weights of step T-1.
  StateType state_type = StateType::fp32;
  std::optional<LossScaleOptions> loss_scale{};  ///< None: gradients are not scaled.
};

/// \brief Trains a model with no stages, transfers or threads.
///
/// It keeps the order of sums that `design.md` lays down: a round's gradients of each use of a
/// block accumulate over its micro-batches in fp32, are rounded once to the parameter's type, and
/// are added by round, then by layer, to sums of the state type. Its weights therefore equal the
/// pipeline's bit for bit.
///
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
        passes_(model_, shapes_.capacity().model, std::move(stream)) {
    if (options.loss_scale) {
      loss_scale_.emplace(*options.loss_scale, options.staleness);
    }
  }

  /// Adds the gradients of one call. \returns its loss.
  /// \throws Error (invalid_argument) when \p batch does not have micro-batches x rounds
  ///         micro-batches that fit into the capacity, or not the tensors that layers read;
  ///         (not_finite) when a micro-batch's loss is NaN or infinite: the iteration's gradients
  ///         are dropped.
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
    if (loss_scale_ && overwrites) {
      record_overflows();
      scale_ = loss_scale_->value();
    }
    call.gradient_scale = scale(batch, slices) * scale_;
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
    return loss / scale_;
  }

  /// One optimizer step with the gradients of all calls since the last one.
  /// \throws Error (invalid_argument) when there was no call; (not_finite) when the gradient's norm
  ///         is NaN or infinite, which is looked at when clipping is on.
  void step() {
    require(std::exchange(has_gradients_, false),
            Errc::invalid_argument,
            "step() needs a forward_backward() since the step before");
    GradientScalerOptions const verdict{options_.clip_norm, loss_scale_.has_value()};
    auto const squares = verdict.measures() ? parameters_.gradient_sum_of_squares() : 0.0;
    auto const factor = step_factor(verdict, steps_ + 1, squares, scale_);
    ++steps_;
    overflows_.push_back(factor.skips);
    if (options_.staleness == 1) {
      synchronize();  // the weights of the step before reach the master copy only now
    }
    if (!factor.skips) {
      parameters_.update(optimizer_, steps_, factor.gradient);
    }
    if (options_.staleness == 0) {
      synchronize();
    }
  }

  /// Brings the master copy up to the finished steps.
  void synchronize() { parameters_.copy_parameters(); }

  /// The loss, without dropout and with the newest weights, of any number of micro-batches, and
  /// the last layer's results.
  /// \throws Error (invalid_argument) as \ref forward_backward does.
  [[nodiscard]] Evaluation evaluate(Batch const& batch) {
    synchronize();
    auto const slices = slice(batch);
    auto call = LayerCall{};
    call.gradient_scale = scale(batch, slices);
    call.random.seed = options_.seed;
    call.evaluating = true;
    Evaluation evaluation;
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
    return evaluation;
  }

  /// Calls `f(name, shape, weights)` with every tensor of the optimizer copy, shared ones once.
  template <class F>
  void for_each_parameter(F&& f) const {
    auto const& blocks = parameters_.blocks().blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      for (std::size_t t = 0; t < blocks[b].specs.size(); ++t) {
        auto const& tensor = blocks[b].specs[t].tensor;
        f(blocks[b].name + "." + tensor.name, tensor.shape, parameters_.weights(BlockId(b), t));
      }
    }
  }

  /// Copies a layer's parameter, as the last step left it, to \p values.
  /// \throws Error (invalid_argument) when there is no such parameter, or one of another size.
  void read_parameter(LayerId layer, std::size_t index, HostSpan<float> values) {
    auto const weights = find(layer, index, values.size());
    std::copy(weights.begin(), weights.end(), values.begin());
  }

  /// Overwrites a layer's parameter, in both copies, from \p values.
  /// \throws Error (invalid_argument) as \ref read_parameter does.
  void write_parameter(LayerId layer, std::size_t index, HostSpan<float const> values) {
    static_cast<void>(find(layer, index, values.size()));
    parameters_.write_weights(parameters_.blocks().places[layer.index()][index], values);
    synchronize();
  }

 private:
  [[nodiscard]] static SerialOptions checked(SerialOptions const& options) {
    require(options.micro_batches_per_round > 0 && options.rounds > 0,
            Errc::invalid_argument,
            "micro-batches and rounds are at least 1");
    require(options.clip_norm >= 0 && std::isfinite(options.clip_norm),
            Errc::invalid_argument,
            "the norm to clip at is positive, or 0 for none");
    require(options.staleness == 0 || options.staleness == 1,
            Errc::invalid_argument,
            "staleness is 0 or 1");
    return options;
  }

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

  /// Tells the loss scale which steps overflowed, as far as this iteration may know.
  void record_overflows() {
    while (loss_scale_->recorded() < loss_scale_->newest_step(steps_ + 1)) {
      loss_scale_->record(overflows_[loss_scale_->recorded()]);
    }
  }

  [[nodiscard]] HostSpan<float const> find(LayerId layer, std::size_t index, std::size_t size) {
    auto const& places = parameters_.blocks().places;
    require(layer.valid() && layer.index() < places.size() && index < places[layer.index()].size(),
            Errc::invalid_argument,
            "the model has no such parameter");
    auto const place = places[layer.index()][index];
    auto const weights =
        parameters_.weights(parameters_.blocks().use(place.use).block, place.tensor);
    require(weights.size() == size,
            Errc::invalid_argument,
            "a parameter is read or written as another number of values than it has");
    return weights;
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
  std::optional<DynamicLossScale> loss_scale_;
  std::vector<bool> overflows_;  // by step
  double scale_ = 1;             // of the iteration
  bool has_gradients_ = false;   // of calls since the last step
};

}  // namespace roundpipe
