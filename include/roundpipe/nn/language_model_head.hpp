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
#include <roundpipe/nn/language_model_head_memory.hpp>
#include <roundpipe/nn/low_rank_adapter.hpp>
#include <roundpipe/nn/token_embedding.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace roundpipe::nn {

/// RMSNorm, projection to the vocabulary, and cross-entropy with the labels.
///
/// | tensor                | shape                  | type                                     |
/// |-----------------------|------------------------|------------------------------------------|
/// | input `hidden`        | [rows, length, hidden] | config.storage                           |
/// | side input `labels`   | [rows, length]         | i32; config.padding_label: no loss there |
/// | `norm.weight`         | [hidden]               | config.parameter                         |
/// | `lm_head.weight`      | [vocabulary, hidden]   | config.parameter; may be tied            |
/// | `lm_head.lora_A.weight` | [rank, hidden]       | config.parameter; with an adapter        |
/// | `lm_head.lora_B.weight` | [vocabulary, rank]   | likewise                                 |
/// | result `last_logits`  | [rows, vocabulary]     | f32: of each row's last position         |
///
/// A label is the token that its own position must predict: the batch does the shifting.
///
/// Logits exist for `config.loss_chunk` positions at a time. They have the accumulation type, so
/// that the loss is not rounded to 16 bits; their gradients have config.storage. The saving forward
/// does nothing. For each chunk, the backward computes the logits, the chunk's part of the loss,
/// and the gradients. Training thus takes three products, and its memory does not grow with the
/// vocabulary.
///
/// A head that is not tied may have a low-rank adapter. The names that patterns match begin with
/// the number of the head's layer, config.layers + 1.
template <Ops O>
class LanguageModelHead {
 public:
  using Stream = typename O::Stream;

  /// \throws Error (invalid_argument) as TransformerConfig::resolved() does.
  explicit LanguageModelHead(TransformerConfig const& config)
      : config_(config.resolved()),
        adapts_(!config_.tied && config_.adapts(prefix() + "lm_head")) {}

  [[nodiscard]] TransformerConfig const& config() const noexcept { return config_; }
  [[nodiscard]] std::string name() const { return "language model head"; }

  /// The projection is exempt from weight decay when it is tied, as the embedding's table is.
  [[nodiscard]] ParameterTable parameters() const {
    auto const& c = config_;
    ParameterTable table{
        {{"norm.weight", {c.hidden}, c.parameter}, Initial::ones(), DecayGroup::exempt},
        {{"lm_head.weight", {c.vocabulary, c.hidden}, c.parameter},
         Initial::normal(static_cast<float>(c.initial_deviation)),
         c.tied ? DecayGroup::exempt : DecayGroup::decayed,
         c.tied ? token_embedding_key : ""},
    };
    if (adapts_) {
      for (auto& spec : detail::adapter_parameters(c, "lm_head", c.vocabulary, c.hidden)) {
        table.push_back(std::move(spec));
      }
    }
    for (auto& spec : table) {
      spec.frozen = spec.sharing_key.empty() ? c.freezes(prefix() + spec.tensor.name)
                                             : detail::freezes_embedding(c);
    }
    return table;
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
    static_cast<void>(Memory(work, config_, shape, true, adapts_));
    return {0, work.used_bytes()};
  }
  /// Of training, where the saving forward does nothing.
  [[nodiscard]] FlopCount work(BatchShape shape) const {
    auto const& c = config_;
    auto const product = 2 * static_cast<double>(shape.positions()) *
                         static_cast<double>(c.hidden) * static_cast<double>(c.vocabulary);
    auto const adapter = adapts_ ? detail::adapter_work(c.lora, shape, c.vocabulary, c.hidden) : 0;
    return {0, (parameters()[1].frozen ? 2 : 3) * product + 4 * adapter};
  }

  void forward(ForwardContext<Stream>& ctx) const {
    if (ctx.saving()) {
      return;
    }
    auto const& c = config_;
    auto work = ctx.workspace();
    Memory const m(work, c, ctx.shape(), false, adapts_);
    O const ops(ctx.stream(), m.scratch);
    auto const& seen = normalize(ops, ctx, m);
    for_each_chunk(m, seen, ctx.shape(), [&](Chunk const& chunk, auto const& part) {
      project(ops, ctx, m, chunk.logits, chunk.normed, chunk.seen);
      ops.cross_entropy(
          part(m.losses), part(m.lse), chunk.logits, part(ctx.side_input(0)), c.padding_label);
    });
    ops.sum(ctx.loss(), m.losses, ctx.gradient_scale());
    if (ctx.wants_results()) {
      auto const length = ctx.shape().length;
      for (std::int64_t row = 0; row < ctx.shape().rows; ++row) {
        auto const last = (row + 1) * length - 1;
        project(ops,
                ctx,
                m,
                detail::row_range(ctx.result(0), c.vocabulary, row, 1),
                detail::row_range(m.normed, c.hidden, last, 1),
                detail::row_range(seen, c.hidden, last, 1));
      }
    }
  }

  void backward(BackwardContext<Stream>& ctx) const {
    auto const& c = config_;
    auto work = ctx.workspace();
    Memory const m(work, c, ctx.shape(), true, adapts_);
    O const ops(ctx.stream(), m.scratch);
    bool const goes_on = ctx.input_gradient(0).present() || ctx.parameter_gradient(0).present();

    auto const& seen = normalize(ops, ctx, m);
    bool const drops = &seen != &m.normed;
    for_each_chunk(m, seen, ctx.shape(), [&](Chunk const& chunk, auto const& part) {
      project(ops, ctx, m, chunk.logits, chunk.normed, chunk.seen);
      ops.cross_entropy(
          part(m.losses), part(m.lse), chunk.logits, part(ctx.side_input(0)), c.padding_label);
      ops.cross_entropy_backward(chunk.dlogits,
                                 chunk.logits,
                                 part(m.lse),
                                 part(ctx.side_input(0)),
                                 c.padding_label,
                                 ctx.gradient_scale());
      ops.linear_weight_gradient(ctx.parameter_gradient(1), chunk.dlogits, chunk.normed);
      if (adapts_) {
        adapter(ops, ctx, m, chunk.seen)
            .add_gradients(
                ctx.parameter_gradient(2), ctx.parameter_gradient(3), chunk.dlogits, chunk.seen);
      }
      // The chunk's part of the norm is no longer needed: its gradient takes over the memory.
      if (goes_on) {
        ops.linear_input_gradient(chunk.normed, chunk.dlogits, ctx.parameter(1), absent);
        if (adapts_) {
          adapter(ops, ctx, m, chunk.seen)
              .input_gradient(chunk.seen, chunk.dlogits, drops ? absent : chunk.seen);
        }
      }
    });
    if (goes_on && drops) {  // all chunks at once, as the mask was drawn
      ops.dropout(m.normed, m.dropped, m.normed, dropout(ctx));
    }
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
  using Memory = detail::HeadMemory<O>;

  /// The tensors of one chunk.
  struct Chunk {
    DeviceTensor normed;
    DeviceTensor seen;  // by the adapter
    DeviceTensor logits;
    DeviceTensor dlogits;
  };

  /// Calls \p f(chunk, part) for each chunk; part(t) is the chunk's part of t, which has one number
  /// for each position.
  template <class F>
  void for_each_chunk(Memory const& m, DeviceTensor const& seen, BatchShape shape, F&& f) const {
    for (std::int64_t first = 0; first < shape.positions(); first += config_.loss_chunk) {
      auto const count = std::min(config_.loss_chunk, shape.positions() - first);
      Chunk chunk{detail::row_range(m.normed, config_.hidden, first, count),
                  detail::row_range(seen, config_.hidden, first, count),
                  detail::row_range(m.logits, config_.vocabulary, 0, count),
                  {}};
      if (m.dlogits.present()) {
        chunk.dlogits = detail::row_range(m.dlogits, config_.vocabulary, 0, count);
      }
      f(chunk, [&](DeviceTensor const& t) { return detail::row_range(t, 1, first, count); });
    }
  }

  [[nodiscard]] std::string prefix() const { return std::to_string(config_.layers + 1) + "."; }
  [[nodiscard]] DropoutOptions dropout(LayerContext<Stream> const& ctx) const {
    return {config_.lora.dropout, ctx.random()};
  }

  /// Computes `m.normed`. \returns what the adapter sees of it.
  DeviceTensor const& normalize(O const& ops,
                                LayerContext<Stream> const& ctx,
                                Memory const& m) const {
    ops.rms_norm(m.normed, ctx.input(0), ctx.parameter(0), config_.norm_epsilon);
    if (!m.dropped.present() || ctx.evaluating()) {
      return m.normed;
    }
    ops.dropout(m.dropped, m.normed, absent, dropout(ctx));
    return m.dropped;
  }

  /// The adapter for the rows of \p seen, which have gone through the dropout.
  [[nodiscard]] detail::LowRankAdapter<O> adapter(O const& ops,
                                                  LayerContext<Stream> const& ctx,
                                                  Memory const& m,
                                                  DeviceTensor const& seen) const {
    auto const rank = config_.lora.rank;
    detail::AdapterMemory memory;
    memory.low = detail::row_range(m.low, rank, 0, seen.shape()[0]);
    return {ops, memory, ctx.parameter(2), ctx.parameter(3), config_.lora.scale(), {}};
  }

  void project(O const& ops,
               LayerContext<Stream> const& ctx,
               Memory const& m,
               DeviceTensor const& logits,
               DeviceTensor const& normed,
               DeviceTensor const& seen) const {
    ops.linear(logits, normed, ctx.parameter(1), absent);
    if (adapts_) {
      adapter(ops, ctx, m, seen).add_to(logits, seen);
    }
  }

  TransformerConfig config_;
  bool adapts_;
};

}  // namespace roundpipe::nn
