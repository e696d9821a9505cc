// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The first layer of a transformer: it turns tokens into vectors.

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/carve.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <cstdint>
#include <string>

namespace roundpipe::nn {

/// The key with which embedding and head of a tied transformer share their table.
inline constexpr char const* token_embedding_key = "token_embedding";

namespace detail {
/// Whether the embedding's table is frozen.
[[nodiscard]] inline bool freezes_embedding(TransformerConfig const& config) {
  return config.frozen_embedding || config.freezes("0.embed_tokens.weight");
}
}  // namespace detail

/// Looks up one row of a [vocabulary, hidden] table for each token.
///
/// | tensor               | shape                  | type             |
/// |----------------------|------------------------|------------------|
/// | side input `tokens`  | [rows, length]         | i32              |
/// | boundary `hidden`    | [rows, length, hidden] | config.storage   |
/// | `embed_tokens.weight`| [vocabulary, hidden]   | config.parameter |
///
/// Dropout, where configured, applies to the boundary. The table is exempt from weight decay, which
/// would only shrink the rows of rare tokens. On the host, a token outside the vocabulary stops the
/// stream with an Error (invalid_argument).
template <Ops O>
class TokenEmbedding {
 public:
  using Stream = typename O::Stream;

  /// \throws Error (invalid_argument) as TransformerConfig::resolved() does.
  explicit TokenEmbedding(TransformerConfig const& config) : config_(config.resolved()) {}

  [[nodiscard]] TransformerConfig const& config() const noexcept { return config_; }
  [[nodiscard]] std::string name() const { return "token embedding"; }

  [[nodiscard]] ParameterTable parameters() const {
    auto const deviation = static_cast<float>(config_.initial_deviation);
    return {{{"embed_tokens.weight", {config_.vocabulary, config_.hidden}, config_.parameter},
             Initial::normal(deviation),
             DecayGroup::exempt,
             config_.tied ? token_embedding_key : "",
             detail::freezes_embedding(config_)}};
  }
  [[nodiscard]] bool backward_reads_parameters() const { return false; }
  [[nodiscard]] TensorTable input(BatchShape) const { return {}; }
  [[nodiscard]] TensorTable boundary(BatchShape shape) const {
    return {{"hidden", {shape.rows, shape.length, config_.hidden}, config_.storage}};
  }
  [[nodiscard]] TensorTable side_inputs(BatchShape shape) const {
    return {{"tokens", {shape.rows, shape.length}, DType::i32}};
  }
  [[nodiscard]] Footprint footprint(BatchShape shape) const {
    TensorCarver work;
    static_cast<void>(carve(work, shape));
    return {0, work.used_bytes()};
  }
  /// The additions of the backward; the forward only moves bytes.
  [[nodiscard]] FlopCount work(BatchShape shape) const {
    return {0, static_cast<double>(shape.positions()) * static_cast<double>(config_.hidden)};
  }

  void forward(ForwardContext<Stream>& ctx) const {
    if (!ctx.wants_output()) {
      return;
    }
    auto work = ctx.workspace();
    O const ops(ctx.stream(), carve(work, ctx.shape()).scratch);
    auto const& hidden = ctx.output(0);
    ops.embedding(hidden, ctx.side_input(0), ctx.parameter(0));
    if (drops(ctx)) {
      ops.dropout(hidden, hidden, absent, {config_.dropout, ctx.random()});
    }
  }

  void backward(BackwardContext<Stream>& ctx) const {
    if (!ctx.parameter_gradient(0).present()) {  // frozen
      return;
    }
    auto work = ctx.workspace();
    auto const memory = carve(work, ctx.shape());
    O const ops(ctx.stream(), memory.scratch);
    auto gradient = ctx.output_gradient(0);
    if (drops(ctx)) {
      ops.dropout(memory.gradient, gradient, absent, {config_.dropout, ctx.random()});
      gradient = memory.gradient;
    }
    ops.embedding_backward(ctx.parameter_gradient(0), gradient, ctx.side_input(0));
  }

 private:
  struct Memory {
    DeviceBytes scratch;
    DeviceTensor gradient;  // after the dropout
  };

  [[nodiscard]] Memory carve(TensorCarver& work, BatchShape shape) const {
    Memory memory;
    memory.scratch = detail::take_scratch(
        work, O::embedding_scratch_bytes(shape.positions(), config_.vocabulary, config_.hidden));
    if (config_.dropout > 0) {
      memory.gradient = work.take({shape.positions(), config_.hidden}, config_.storage);
    }
    return memory;
  }
  [[nodiscard]] bool drops(LayerContext<Stream> const& ctx) const {
    return config_.dropout > 0 && !ctx.evaluating();
  }

  TransformerConfig config_;
};

}  // namespace roundpipe::nn
