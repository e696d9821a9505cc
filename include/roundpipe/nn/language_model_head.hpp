// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The last layer of a transformer: the final norm, the projection to logits and the loss.

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/carve.hpp>
#include <roundpipe/nn/token_embedding.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace roundpipe::nn {

/// RMSNorm, projection to the vocabulary, and the cross-entropy of the labels.
///
/// | tensor                | shape                  | type                                     |
/// |-----------------------|------------------------|------------------------------------------|
/// | input `hidden`        | [rows, length, hidden] | config.storage                           |
/// | side input `labels`   | [rows, length]         | i32; config.padding_label: no loss there |
/// | `norm.weight`         | [hidden]               | config.parameter                         |
/// | `lm_head.weight`      | [vocabulary, hidden]   | config.parameter; may be tied            |
/// | result `last_logits`  | [rows, vocabulary]     | f32: of each row's last position         |
///
/// A label is what its own position shall predict: shifting is the batch's business.
///
/// Logits exist for `config.loss_chunk` positions at a time and have the accumulation type, so that
/// the loss is not rounded to 16 bits. Their gradients have config.storage, except that f16 would
/// not hold them: a scaled loss's can exceed its range, and an unscaled one's vanish in it. The
/// saving forward keeps one number a position, the log-sum-exp; the backward computes the norm and
/// the logits again: a third product beside the two of the gradients, for memory that does not grow
/// with the vocabulary. (Gradients can not be made during the forward, which has no parameter
/// gradients.)
template <Ops O>
class LanguageModelHead {
 public:
  using Stream = typename O::Stream;

  /// \throws Error (invalid_argument) as TransformerConfig::resolved().
  explicit LanguageModelHead(TransformerConfig const& config) : config_(config.resolved()) {}

  [[nodiscard]] TransformerConfig const& config() const noexcept { return config_; }
  [[nodiscard]] std::string name() const { return "language model head"; }

  /// The projection is exempt from weight decay if it is tied, as the embedding's table is.
  [[nodiscard]] ParameterTable parameters() const {
    auto const& c = config_;
    return {
        {{"norm.weight", {c.hidden}, c.parameter}, Initial::ones(), DecayGroup::exempt, {}},
        {{"lm_head.weight", {c.vocabulary, c.hidden}, c.parameter},
         Initial::normal(static_cast<float>(c.initial_deviation)),
         c.tied ? DecayGroup::exempt : DecayGroup::decayed,
         c.tied ? token_embedding_key : "",
         c.tied && c.frozen_embedding},
    };
  }
  [[nodiscard]] TensorTable input(BatchShape shape) const {
    return {{"hidden", {shape.rows, shape.length, config_.hidden}, config_.storage}};
  }
  [[nodiscard]] TensorTable boundary(BatchShape) const { return {}; }
  [[nodiscard]] TensorTable side_inputs(BatchShape shape) const {
    return {{"labels", {shape.rows, shape.length}, DType::i32}};
  }
  [[nodiscard]] TensorTable results(BatchShape shape) const {
    return {{"last_logits", {shape.rows, config_.vocabulary}, DType::f32}};
  }

  /// The number of labels that are not padding.
  /// \throws Error (invalid_argument) for a label that is neither padding nor in the vocabulary.
  [[nodiscard]] std::int64_t loss_terms(std::span<HostTensor const> side_inputs,
                                        BatchShape shape) const {
    require(side_inputs.size() == 1 &&
                side_inputs[0].shape.size() == static_cast<std::size_t>(shape.positions()),
            Errc::invalid_argument,
            "a language model head takes one label a position");
    std::int64_t terms = 0;
    for (auto const label : side_inputs[0].as<std::int32_t>()) {
      if (label == config_.padding_label) {
        continue;
      }
      if (label < 0 || label >= config_.vocabulary) {
        throw Error(Errc::invalid_argument,
                    "label " + std::to_string(label) + " is outside the vocabulary of " +
                        std::to_string(config_.vocabulary) + " and is no padding (" +
                        std::to_string(config_.padding_label) + ")");
      }
      ++terms;
    }
    return terms;
  }

  [[nodiscard]] Footprint footprint(BatchShape shape) const {
    TensorCarver saved;
    static_cast<void>(take_lse(saved, shape));
    TensorCarver forward;
    static_cast<void>(take_lse(forward, shape));
    static_cast<void>(Memory(forward, config_, shape, Pass::forward));
    TensorCarver backward;
    static_cast<void>(Memory(backward, config_, shape, Pass::backward));
    return {saved.used_bytes(), std::max(forward.used_bytes(), backward.used_bytes())};
  }
  /// The backward counts the logits, which it computes again.
  [[nodiscard]] Work work(BatchShape shape) const {
    auto const product = 2 * static_cast<double>(shape.positions()) *
                         static_cast<double>(config_.hidden) *
                         static_cast<double>(config_.vocabulary);
    return {product, 3 * product};
  }

  void forward(ForwardContext<Stream>& ctx) const {
    auto const& c = config_;
    auto keep = ctx.saved();
    auto work = ctx.workspace();
    auto const lse = take_lse(ctx.saving() ? keep : work, ctx.shape());
    Memory const m(work, c, ctx.shape(), Pass::forward);
    O const ops(ctx.stream(), m.scratch);
    auto const& weight = ctx.parameter(1);

    ops.rms_norm(m.normed, ctx.input(0), ctx.parameter(0), c.norm_epsilon);
    for_each_chunk(m, ctx.shape(), [&](Chunk const& chunk, auto const& part) {
      ops.linear(chunk.logits, chunk.normed, weight, absent);
      ops.cross_entropy(
          part(m.losses), part(lse), chunk.logits, part(ctx.side_input(0)), c.padding_label);
    });
    ops.sum(ctx.loss(), m.losses, ctx.gradient_scale());
    if (ctx.wants_results()) {
      auto const length = ctx.shape().length;
      for (std::int64_t row = 0; row < ctx.shape().rows; ++row) {
        ops.linear(detail::row_range(ctx.result(0), c.vocabulary, row, 1),
                   detail::row_range(m.normed, c.hidden, (row + 1) * length - 1, 1),
                   weight,
                   absent);
      }
    }
  }

  void backward(BackwardContext<Stream>& ctx) const {
    auto const& c = config_;
    auto keep = ctx.saved();
    auto work = ctx.workspace();
    auto const lse = take_lse(keep, ctx.shape());
    Memory const m(work, c, ctx.shape(), Pass::backward);
    O const ops(ctx.stream(), m.scratch);
    auto const& weight = ctx.parameter(1);
    bool const goes_on = ctx.input_gradient(0).present() || ctx.parameter_gradient(0).present();

    ops.rms_norm(m.normed, ctx.input(0), ctx.parameter(0), c.norm_epsilon);
    for_each_chunk(m, ctx.shape(), [&](Chunk const& chunk, auto const& part) {
      ops.linear(chunk.logits, chunk.normed, weight, absent);
      ops.cross_entropy_backward(chunk.dlogits,
                                 chunk.logits,
                                 part(lse),
                                 part(ctx.side_input(0)),
                                 c.padding_label,
                                 ctx.gradient_scale());
      ops.linear_weight_gradient(ctx.parameter_gradient(1), chunk.dlogits, chunk.normed);
      // The chunk's part of the norm is needed no more: its gradient takes the place.
      if (goes_on) {
        ops.linear_input_gradient(chunk.normed, chunk.dlogits, weight, absent);
      }
    });
    if (goes_on) {
      ops.rms_norm_backward(ctx.input_gradient(0),
                            ctx.parameter_gradient(0),
                            m.normed,
                            ctx.input(0),
                            ctx.parameter(0),
                            absent,
                            c.norm_epsilon);
    }
  }

 private:
  enum class Pass { forward, backward };

  struct Memory {
    Memory(TensorCarver& work, TransformerConfig const& c, BatchShape shape, Pass pass) {
      auto const positions = shape.positions();
      auto const chunk = std::min(positions, c.loss_chunk);
      auto const wide = accumulation_type(c.storage);
      scratch = detail::take_scratch(
          work, std::max(O::linear_scratch_bytes(), O::norm_scratch_bytes(positions, c.hidden)));
      normed = work.take({positions, c.hidden}, c.storage);
      logits = work.take({chunk, c.vocabulary}, wide);
      if (pass == Pass::forward) {
        losses = work.take({positions}, wide);
      } else {
        dlogits = c.storage == DType::bf16 ? work.take({chunk, c.vocabulary}, c.storage) : logits;
      }
    }

    DeviceBytes scratch;
    DeviceTensor normed;
    DeviceTensor logits;   // of one chunk
    DeviceTensor dlogits;  // of one chunk
    DeviceTensor losses;
  };

  /// The tensors of one chunk.
  struct Chunk {
    DeviceTensor normed;
    DeviceTensor logits;
    DeviceTensor dlogits;
  };

  /// Calls \p f(chunk, part) for each chunk, where part(t) is its part of t, one number a position.
  template <class F>
  void for_each_chunk(Memory const& m, BatchShape shape, F&& f) const {
    for (std::int64_t first = 0; first < shape.positions(); first += config_.loss_chunk) {
      auto const count = std::min(config_.loss_chunk, shape.positions() - first);
      Chunk chunk{detail::row_range(m.normed, config_.hidden, first, count),
                  detail::row_range(m.logits, config_.vocabulary, 0, count),
                  {}};
      if (m.dlogits.present()) {
        chunk.dlogits = detail::row_range(m.dlogits, config_.vocabulary, 0, count);
      }
      f(chunk, [&](DeviceTensor const& t) { return detail::row_range(t, 1, first, count); });
    }
  }

  [[nodiscard]] DeviceTensor take_lse(TensorCarver& carver, BatchShape shape) const {
    return carver.take({shape.positions()}, accumulation_type(config_.storage));
  }

  TransformerConfig config_;
};

}  // namespace roundpipe::nn
