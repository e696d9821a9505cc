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

/// RMSNorm, projection to the vocabulary, and cross-entropy with the labels.
///
/// | tensor                | shape                  | type                                     |
/// |-----------------------|------------------------|------------------------------------------|
/// | input `hidden`        | [rows, length, hidden] | config.storage                           |
/// | side input `labels`   | [rows, length]         | i32; config.padding_label: no loss there |
/// | `norm.weight`         | [hidden]               | config.parameter                         |
/// | `lm_head.weight`      | [vocabulary, hidden]   | config.parameter; may be tied            |
/// | result `last_logits`  | [rows, vocabulary]     | f32: of each row's last position         |
///
/// A label is the token that its own position must predict: the batch does the shifting.
///
/// Logits exist for `config.loss_chunk` positions at a time. They have the accumulation type, so
/// that the loss is not rounded to 16 bits; their gradients have config.storage. The saving forward
/// does nothing. For each chunk, the backward computes the logits, the chunk's part of the loss,
/// and the gradients. Training thus takes three products, and its memory does not grow with the
/// vocabulary.
template <Ops O>
class LanguageModelHead {
 public:
  using Stream = typename O::Stream;

  /// \throws Error (invalid_argument) as TransformerConfig::resolved() does.
  explicit LanguageModelHead(TransformerConfig const& config) : config_(config.resolved()) {}

  [[nodiscard]] TransformerConfig const& config() const noexcept { return config_; }
  [[nodiscard]] std::string name() const { return "language model head"; }

  /// The projection is exempt from weight decay when it is tied, as the embedding's table is.
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
            "a language model head needs one label for each position");
    std::int64_t terms = 0;
    for (auto const label : side_inputs[0].as<std::int32_t>()) {
      if (label == config_.padding_label) {
        continue;
      }
      if (label < 0 || label >= config_.vocabulary) {
        throw Error(Errc::invalid_argument,
                    "label " + std::to_string(label) + " is outside the vocabulary of " +
                        std::to_string(config_.vocabulary) + " and is not the padding label (" +
                        std::to_string(config_.padding_label) + ")");
      }
      ++terms;
    }
    return terms;
  }

  [[nodiscard]] Footprint footprint(BatchShape shape) const {
    TensorCarver work;
    static_cast<void>(Memory(work, config_, shape, Pass::backward));
    return {0, work.used_bytes()};
  }
  /// Of training, where the saving forward does nothing.
  [[nodiscard]] FlopCount work(BatchShape shape) const {
    auto const product = 2 * static_cast<double>(shape.positions()) *
                         static_cast<double>(config_.hidden) *
                         static_cast<double>(config_.vocabulary);
    return {0, 3 * product};
  }

  void forward(ForwardContext<Stream>& ctx) const {
    if (ctx.saving()) {
      return;
    }
    auto const& c = config_;
    auto work = ctx.workspace();
    Memory const m(work, c, ctx.shape(), Pass::forward);
    O const ops(ctx.stream(), m.scratch);
    auto const& weight = ctx.parameter(1);

    ops.rms_norm(m.normed, ctx.input(0), ctx.parameter(0), c.norm_epsilon);
    for_each_chunk(m, ctx.shape(), [&](Chunk const& chunk, auto const& part) {
      ops.linear(chunk.logits, chunk.normed, weight, absent);
      ops.cross_entropy(
          part(m.losses), part(m.lse), chunk.logits, part(ctx.side_input(0)), c.padding_label);
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
    auto work = ctx.workspace();
    Memory const m(work, c, ctx.shape(), Pass::backward);
    O const ops(ctx.stream(), m.scratch);
    auto const& weight = ctx.parameter(1);
    bool const goes_on = ctx.input_gradient(0).present() || ctx.parameter_gradient(0).present();

    ops.rms_norm(m.normed, ctx.input(0), ctx.parameter(0), c.norm_epsilon);
    for_each_chunk(m, ctx.shape(), [&](Chunk const& chunk, auto const& part) {
      ops.linear(chunk.logits, chunk.normed, weight, absent);
      ops.cross_entropy(
          part(m.losses), part(m.lse), chunk.logits, part(ctx.side_input(0)), c.padding_label);
      ops.cross_entropy_backward(chunk.dlogits,
                                 chunk.logits,
                                 part(m.lse),
                                 part(ctx.side_input(0)),
                                 c.padding_label,
                                 ctx.gradient_scale());
      ops.linear_weight_gradient(ctx.parameter_gradient(1), chunk.dlogits, chunk.normed);
      // The chunk's part of the norm is no longer needed: its gradient takes over the memory.
      if (goes_on) {
        ops.linear_input_gradient(chunk.normed, chunk.dlogits, weight, absent);
      }
    });
    ops.sum(ctx.loss(), m.losses, ctx.gradient_scale());
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
      losses = work.take({positions}, wide);
      lse = work.take({positions}, wide);
      if (pass == Pass::backward) {
        dlogits = c.storage == wide ? logits : work.take({chunk, c.vocabulary}, c.storage);
      }
    }

    DeviceBytes scratch;
    DeviceTensor normed;
    DeviceTensor logits;   // of one chunk
    DeviceTensor dlogits;  // of one chunk
    DeviceTensor losses;   // of all positions
    DeviceTensor lse;
  };

  /// The tensors of one chunk.
  struct Chunk {
    DeviceTensor normed;
    DeviceTensor logits;
    DeviceTensor dlogits;
  };

  /// Calls \p f(chunk, part) for each chunk; part(t) is the chunk's part of t, which has one number
  /// for each position.
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

  TransformerConfig config_;
};

}  // namespace roundpipe::nn
