// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Attention as a graph of cuDNN: what a plan is for, and the graph that cuDNN plans. Empty
/// unless the program is built with cuDNN.

#if defined(ROUNDPIPE_HAS_CUDNN) && ROUNDPIPE_HAS_CUDNN

#  include <roundpipe/concepts/ops.hpp>
#  include <roundpipe/core/dtype.hpp>
#  include <roundpipe/cuda/attention/attention_plan.hpp>
#  include <roundpipe/cuda/attention/cudnn_frontend.hpp>

#  include <cmath>
#  include <cstdint>
#  include <tuple>

namespace roundpipe::cu::detail {

/// The numbers of the tensors in the graph.
enum CudnnId : std::int64_t { q_id = 1, k_id, v_id, out_id, lse_id, dout_id, dq_id, dk_id, dv_id };

/// What one plan is for.
struct CudnnAttentionKey {
  bool backward = false;
  bool deterministic = false;
  AttentionShape shape;
  AttentionSlice slice;

  [[nodiscard]] auto tied() const {
    return std::tie(backward,
                    deterministic,
                    shape.rows,
                    shape.length,
                    shape.heads,
                    shape.kv_heads,
                    shape.head_dim,
                    shape.dtype,
                    shape.window,
                    slice.rows,
                    slice.kv_heads);
  }
  friend bool operator<(CudnnAttentionKey const& a, CudnnAttentionKey const& b) {
    return a.tied() < b.tied();
  }
};

/// Describes the passes of \p key to \p graph.
inline void describe_attention(::cudnn_frontend::graph::Graph& graph,
                               CudnnAttentionKey const& key) {
  namespace fe = ::cudnn_frontend;
  auto const& s = key.shape;
  auto const rows = key.slice.rows;
  auto const kv_heads = key.slice.kv_heads;
  auto const heads = s.heads / s.kv_heads * kv_heads;
  auto const type = s.dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF;
  // [rows, length, heads, head_dim] with the strides of all heads, in cuDNN's order of extents.
  auto const set_vectors = [&](auto& t, CudnnId id, std::int64_t n, std::int64_t all) {
    t.set_uid(id).set_data_type(type);
    t.set_dim({rows, n, s.length, s.head_dim});
    t.set_stride({s.length * all * s.head_dim, s.head_dim, all * s.head_dim, 1});
  };
  auto const set_lse = [&](auto& t) {
    t.set_uid(lse_id).set_data_type(fe::DataType_t::FLOAT);
    t.set_dim({rows, heads, s.length, 1}).set_stride({heads * s.length, s.length, 1, 1});
  };
  auto const vectors = [&](CudnnId id, char const* name, std::int64_t n, std::int64_t all) {
    auto t = fe::graph::Tensor_attributes().set_name(name);
    set_vectors(t, id, n, all);
    return graph.tensor(t);
  };
  graph.set_io_data_type(type)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  auto const q = vectors(q_id, "q", heads, s.heads);
  auto const k = vectors(k_id, "k", kv_heads, s.kv_heads);
  auto const v = vectors(v_id, "v", kv_heads, s.kv_heads);
  auto const scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.head_dim)));
  // A query sees the keys at its own position and before; with a left bound only those of which the
  // position plus the bound is behind the query's.
  auto const set_band = [&](auto& options) {
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
    if (s.window > 0) {
      options.set_diagonal_band_left_bound(static_cast<int>(s.window));
    }
  };
  if (!key.backward) {
    auto options = fe::graph::SDPA_attributes().set_name("attention");
    options.set_generate_stats(true).set_attn_scale(scale);
    set_band(options);
    auto const [out, lse] = graph.sdpa(q, k, v, options);
    out->set_output(true);
    set_vectors(*out, out_id, heads, s.heads);
    lse->set_output(true);
    set_lse(*lse);
    return;
  }
  auto const out = vectors(out_id, "out", heads, s.heads);
  auto const dout = vectors(dout_id, "dout", heads, s.heads);
  auto statistics = fe::graph::Tensor_attributes().set_name("lse");
  set_lse(statistics);
  auto options = fe::graph::SDPA_backward_attributes().set_name("attention_backward");
  options.set_attn_scale(scale).set_deterministic_algorithm(key.deterministic);
  set_band(options);
  auto const [dq, dk, dv] =
      graph.sdpa_backward(q, k, v, out, dout, graph.tensor(statistics), options);
  dq->set_output(true);
  set_vectors(*dq, dq_id, heads, s.heads);
  dk->set_output(true);
  set_vectors(*dk, dk_id, kv_heads, s.kv_heads);
  dv->set_output(true);
  set_vectors(*dv, dv_id, kv_heads, s.kv_heads);
}

}  // namespace roundpipe::cu::detail

#endif
