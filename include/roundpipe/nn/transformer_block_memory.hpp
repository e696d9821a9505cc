// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How a transformer block divides its memory: saved tensors, and the workspace of either
/// pass.

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/carve.hpp>
#include <roundpipe/nn/low_rank_adapter.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe::nn::detail {

/// The shapes of a block's intermediates.
struct BlockShapes {
  BlockShapes(TransformerConfig const& c, BatchShape s)
      : hidden{s.rows, s.length, c.hidden},
        q{s.rows, s.length, c.heads, c.head_dim},
        k{s.rows, s.length, c.kv_heads, c.head_dim},
        lse{s.rows, c.heads, s.length},
        wide{s.rows, s.length, c.intermediate} {}

  Shape hidden;
  Shape q;
  Shape k;
  Shape lse;
  Shape wide;
};

/// What each save level of a block adds to the one before. In long sequences attention takes the
/// most time for its bytes; all products take the same.
enum BlockLevel : std::size_t {
  keeps_attention = 1,  ///< The attention's output and its log-sum-exp.
  keeps_queries = 2,    ///< Queries, keys, values.
  keeps_products = 3,   ///< Gate and up.
  keeps_all = 4,        ///< The hidden state between the halves.
};

/// What the saving forward leaves to the backward. Queries and keys are saved rotated. With a norm
/// before the rotation they are saved as projected, because the gradient of the norm needs them.
struct BlockSaved {
  BlockSaved(TensorCarver& carver, TransformerConfig const& c, BatchShape shape) {
    BlockShapes const s(c, shape);
    attended = carver.take(s.q, c.storage);
    lse = carver.take(s.lse, accumulation_type(c.storage));
    level_bytes[keeps_attention - 1] = carver.used_bytes();
    q = carver.take(s.q, c.storage);
    k = carver.take(s.k, c.storage);
    v = carver.take(s.k, c.storage);
    behind_attention = carver;
    level_bytes[keeps_queries - 1] = carver.used_bytes();
    gate = carver.take(s.wide, c.storage);
    up = carver.take(s.wide, c.storage);
    level_bytes[keeps_products - 1] = carver.used_bytes();
    middle = carver.take(s.hidden, c.storage);
    level_bytes[keeps_all - 1] = carver.used_bytes();
  }

  DeviceTensor attended;
  DeviceTensor lse;
  DeviceTensor q;
  DeviceTensor k;
  DeviceTensor v;
  DeviceTensor gate;
  DeviceTensor up;
  DeviceTensor middle;
  TensorCarver behind_attention;               ///< What follows is written after the attention.
  std::array<Bytes, keeps_all> level_bytes{};  ///< By level, from 1; counted by a fresh carver.
};

/// Scratch for all operations of a block but attention.
template <Ops O>
[[nodiscard]] DeviceBytes take_block_scratch(TensorCarver& work,
                                             TransformerConfig const& c,
                                             BatchShape s) {
  auto const bias = [&](bool there, std::int64_t width) {
    return there ? O::bias_scratch_bytes(s.positions(), width) : 0;
  };
  return take_scratch(work,
                      std::max({O::linear_scratch_bytes(),
                                bias(c.attention_bias, c.query_width()),
                                bias(c.output_bias || c.mlp_bias, c.hidden),
                                bias(c.mlp_bias, c.intermediate),
                                O::norm_scratch_bytes(s.positions(), c.hidden),
                                O::norm_scratch_bytes(s.positions() * c.heads, c.head_dim)}));
}

/// Scratch for attention. It may take more than all else, so it lies where the tensors of the
/// other half of a pass do.
template <Ops O>
[[nodiscard]] DeviceBytes take_attention_scratch(TensorCarver& work,
                                                 TransformerConfig const& c,
                                                 BatchShape s) {
  auto const window = c.sliding_window < s.length ? c.sliding_window : 0;
  return take_scratch(work,
                      O::attention_scratch_bytes(
                          {s.rows, s.length, c.heads, c.kv_heads, c.head_dim, c.storage, window}));
}

/// Of two ways to go on with the same memory, the one that takes more.
[[nodiscard]] inline TensorCarver const& larger(TensorCarver const& a, TensorCarver const& b) {
  return a.used_bytes() < b.used_bytes() ? b : a;
}

/// The workspace of the forward. When nothing is saved, the workspace also holds these tensors.
template <Ops O>
struct BlockForward {
  /// \param adapted_width as \ref AdapterMemory takes it.
  BlockForward(TensorCarver& work,
               TransformerConfig const& c,
               BatchShape shape,
               BlockSaved const& saved,
               bool saving,
               std::int64_t adapted_width)
      : scratch(take_block_scratch<O>(work, c, shape)),
        adapter(work, c, shape.positions(), adapted_width) {
    BlockShapes const s(c, shape);
    normed = work.take(s.hidden, c.storage);
    rotated_q = c.query_key_norm && saving ? work.take(s.q, c.storage) : saved.q;
    rotated_k = c.query_key_norm && saving ? work.take(s.k, c.storage) : saved.k;
    auto attention = saving ? work : saved.behind_attention;
    attention_scratch = take_attention_scratch<O>(attention, c, shape);
    activation = saving ? work.take(s.wide, c.storage) : saved.gate;
    work = larger(work, attention);
    projected = normed;  // no norm is needed any more when dropout applies to a projection
  }

  DeviceBytes scratch;
  AdapterMemory adapter;
  DeviceBytes attention_scratch;
  DeviceTensor normed;
  DeviceTensor rotated_q;
  DeviceTensor rotated_k;
  DeviceTensor activation;
  DeviceTensor projected;
};

/// The workspace of the backward. The two halves run one after the other in the same memory.
template <Ops O>
struct BlockBackward {
  BlockBackward(TensorCarver& work,
                TransformerConfig const& c,
                BatchShape shape,
                BlockSaved const& saved,
                std::int64_t adapted_width)
      : scratch(take_block_scratch<O>(work, c, shape)),
        adapter(work, c, shape.positions(), adapted_width) {
    BlockShapes const s(c, shape);
    middle = work.take(s.hidden, c.storage);

    auto mlp = work;
    gate = mlp.take(s.wide, c.storage);
    up = mlp.take(s.wide, c.storage);
    activation = mlp.take(s.wide, c.storage);
    mlp_projected = c.dropout > 0 ? mlp.take(s.hidden, c.storage) : absent;

    auto attention = work;
    attended = attention.take(s.q, c.storage);
    q = attention.take(s.q, c.storage);
    k = attention.take(s.k, c.storage);
    v = attention.take(s.k, c.storage);
    rotated_q = c.query_key_norm ? attention.take(s.q, c.storage) : saved.q;
    rotated_k = c.query_key_norm ? attention.take(s.k, c.storage) : saved.k;
    normed = attention.take(s.hidden, c.storage);
    attention_projected = normed;  // the first is done before the second begins
    attention_scratch = take_attention_scratch<O>(attention, c, shape);

    work = larger(mlp, attention);
  }

  DeviceBytes scratch;
  AdapterMemory adapter;
  DeviceBytes attention_scratch;
  DeviceTensor middle;  // the norm of middle, its gradient, then the gradient of middle
  DeviceTensor gate;    // gradients from here on, unless noted
  DeviceTensor up;
  DeviceTensor activation;  // recomputed
  DeviceTensor mlp_projected;
  DeviceTensor attended;
  DeviceTensor q;
  DeviceTensor k;
  DeviceTensor v;
  DeviceTensor rotated_q;  // recomputed
  DeviceTensor rotated_k;  // recomputed
  DeviceTensor normed;     // the norm of the input, then its gradient
  DeviceTensor attention_projected;
};

/// The bytes that each save level keeps.
[[nodiscard]] inline std::vector<Bytes> block_save_levels(TransformerConfig const& c,
                                                          BatchShape shape) {
  TensorCarver keep;
  BlockSaved const saved(keep, c, shape);
  return {saved.level_bytes.begin(), saved.level_bytes.end()};
}

/// The bytes that these structures take.
template <Ops O>
[[nodiscard]] Footprint block_footprint(TransformerConfig const& c,
                                        BatchShape shape,
                                        std::int64_t adapted_width) {
  TensorCarver keep;
  BlockSaved const saved(keep, c, shape);
  TensorCarver saving;
  BlockForward<O>(saving, c, shape, saved, true, adapted_width);
  TensorCarver forgetting;
  BlockForward<O>(forgetting, c, shape, BlockSaved(forgetting, c, shape), false, adapted_width);
  TensorCarver backward;
  BlockBackward<O>(backward, c, shape, saved, adapted_width);
  return {keep.used_bytes(),
          std::max({saving.used_bytes(), forgetting.used_bytes(), backward.used_bytes()})};
}

}  // namespace roundpipe::nn::detail
