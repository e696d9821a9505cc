// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/ops/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief The operations of the reference layers on a CUDA device.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/attention/attention_cudnn.hpp>
#include <roundpipe/cuda/attention/attention_plan.hpp>
#include <roundpipe/cuda/cuda_stream.hpp>
#include <roundpipe/cuda/kernels/bias.cuh>
#include <roundpipe/cuda/kernels/cross_entropy.cuh>
#include <roundpipe/cuda/kernels/dropout.cuh>
#include <roundpipe/cuda/kernels/embedding.cuh>
#include <roundpipe/cuda/kernels/partial_sums.cuh>
#include <roundpipe/cuda/kernels/rms_norm.cuh>
#include <roundpipe/cuda/kernels/rms_norm_backward.cuh>
#include <roundpipe/cuda/kernels/rotary.cuh>
#include <roundpipe/cuda/kernels/rotary_backward.cuh>
#include <roundpipe/cuda/kernels/scatter_add.cuh>
#include <roundpipe/cuda/kernels/sum.cuh>
#include <roundpipe/cuda/kernels/swiglu.cuh>
#include <roundpipe/cuda/matmul/matmul.hpp>
#include <roundpipe/cuda/matmul/matmul_algorithms.hpp>
#include <roundpipe/cuda/ops/attention.cuh>
#include <roundpipe/nn/op_checks.hpp>

#include <cuda/stream_ref>

#include <cstdint>

namespace roundpipe::cu {

/// \ref roundpipe::Ops on a stream of a CUDA device; the concept says what they mean and throw.
///
/// Storage is f32, bf16 or f16; kernels compute in f32 and round once. Sums of gradients, losses
/// and log-sum-exps are f32. The fast kernels want tensors of one storage type, gains, biases and
/// tables of that type or f32, addresses and rows at multiples of 16 bytes; other mixes of the
/// three types, addresses and extents take a slower kernel that reads element by element. No sum
/// depends on timing or on the device: its order follows from extents alone. A token outside the
/// vocabulary yields zeros and takes no gradient; a label outside it a loss of NaN and no gradient.
///
/// \tparam StreamType converts to \c cuda::stream_ref, which makes its device current, and has
///         `device()` and `resources()`, as \ref CudaStream.
/// \tparam Attention how attention is computed.
template <class StreamType, AttentionOptions Attention = AttentionOptions{}>
class BasicCudaOps {
 public:
  using Stream = StreamType;

  /// A handle for operations on \p stream, which must outlive it. \p scratch must live until the
  /// operations have run.
  explicit BasicCudaOps(Stream& stream, DeviceBytes scratch = {}) noexcept
      : stream_(&stream), scratch_(scratch) {}

  static Bytes linear_scratch_bytes() noexcept { return matmul_scratch_bytes(); }
  static Bytes bias_scratch_bytes(std::int64_t rows, std::int64_t width) noexcept {
    return detail::bias_partials_bytes(rows, width);
  }
  static Bytes norm_scratch_bytes(std::int64_t vectors, std::int64_t width) noexcept {
    return detail::partials_bytes(vectors, width);
  }
  static Bytes attention_scratch_bytes(AttentionShape const& shape) {
    return cu::attention_scratch_bytes(shape, Attention);
  }
  static Bytes embedding_scratch_bytes(std::int64_t tokens,
                                       std::int64_t /*vocabulary*/,
                                       std::int64_t /*width*/) noexcept {
    return detail::scatter_add_bytes(tokens);
  }

  void linear(DeviceTensor const& y,
              DeviceTensor const& x,
              DeviceTensor const& weight,
              DeviceTensor const& addend = absent,
              double scale = 1) const {
    auto const e = nn::detail::check_linear("linear", y, x, weight);
    nn::detail::check_optional("linear", addend, e.rows * e.out);
    cu::linear(*stream_, algorithms(), stream_->device(), scratch_, e, y, x, weight, addend, scale);
  }

  void linear_input_gradient(DeviceTensor const& dx,
                             DeviceTensor const& dy,
                             DeviceTensor const& weight,
                             DeviceTensor const& addend = absent,
                             double scale = 1) const {
    auto const e = nn::detail::check_linear("linear_input_gradient", dy, dx, weight);
    nn::detail::check_optional("linear_input_gradient", addend, e.rows * e.in);
    cu::linear_input_gradient(
        *stream_, algorithms(), stream_->device(), scratch_, e, dx, dy, weight, addend, scale);
  }

  void linear_weight_gradient(DeviceTensor const& dweight,
                              DeviceTensor const& dy,
                              DeviceTensor const& x) const {
    if (!dweight.present()) {
      return;
    }
    auto const e = nn::detail::check_linear("linear_weight_gradient", dy, x, dweight);
    nn::detail::check_sum("linear_weight_gradient", dweight, e.in * e.out);
    cu::linear_weight_gradient(
        *stream_, algorithms(), stream_->device(), scratch_, e, dweight, dy, x);
  }

  void add_bias(DeviceTensor const& y,
                DeviceTensor const& bias,
                DeviceTensor const& addend = absent) const {
    auto const e = nn::detail::check_bias("add_bias", y, bias, addend);
    cu::add_bias(*stream_, e, y, bias, addend);
  }

  void bias_gradient(DeviceTensor const& dbias, DeviceTensor const& dy) const {
    if (!dbias.present()) {
      return;
    }
    auto const e = nn::detail::check_bias("bias_gradient", dy, dbias, absent);
    nn::detail::check_sum("bias_gradient", dbias, e.width);
    cu::bias_gradient(*stream_, scratch_, e, dbias, dy);
  }

  void rms_norm(DeviceTensor const& y,
                DeviceTensor const& x,
                DeviceTensor const& gain,
                double epsilon) const {
    auto const e = nn::detail::check_norm("rms_norm", y, x, gain);
    cu::rms_norm(*stream_, e, y, x, gain, epsilon);
  }

  void rms_norm_backward(DeviceTensor const& dx,
                         DeviceTensor const& dgain,
                         DeviceTensor const& dy,
                         DeviceTensor const& x,
                         DeviceTensor const& gain,
                         DeviceTensor const& addend,
                         double epsilon) const {
    auto const e = nn::detail::check_norm("rms_norm_backward", dy, x, gain);
    nn::detail::check_optional_sum("rms_norm_backward", dgain, e.width);
    nn::detail::check_optional("rms_norm_backward", dx, e.rows * e.width);
    nn::detail::check_optional("rms_norm_backward", addend, e.rows * e.width);
    cu::rms_norm_backward(*stream_, scratch_, e, dx, dgain, dy, x, gain, addend, epsilon);
  }

  void rotary(DeviceTensor const& y,
              DeviceTensor const& x,
              DeviceTensor const& gain,
              RotaryOptions const& options) const {
    nn::detail::check_rotary("rotary", y, x, gain);
    cu::rotary(*stream_, y, x, gain, options);
  }

  void rotary_backward(DeviceTensor const& dx,
                       DeviceTensor const& dgain,
                       DeviceTensor const& dy,
                       DeviceTensor const& x,
                       DeviceTensor const& gain,
                       RotaryOptions const& options) const {
    nn::detail::check_rotary("rotary_backward", dx, dy, gain);
    if (gain.present()) {
      nn::detail::check_size("rotary_backward", x, nn::detail::extent(dy.size()));
      nn::detail::check_optional_sum("rotary_backward", dgain, nn::detail::extent(gain.size()));
    }
    cu::rotary_backward(*stream_, scratch_, dx, dgain, dy, x, gain, options);
  }

  void attention(DeviceTensor const& out,
                 DeviceTensor const& lse,
                 DeviceTensor const& q,
                 DeviceTensor const& k,
                 DeviceTensor const& v,
                 std::int64_t window = 0) const {
    auto const shape = nn::detail::check_attention("attention", out, lse, q, k, v, window);
    cu::attention(
        *stream_, cudnn(), Attention, stream_->device(), scratch_, shape, out, lse, q, k, v);
  }

  void attention_backward(DeviceTensor const& dq,
                          DeviceTensor const& dk,
                          DeviceTensor const& dv,
                          DeviceTensor const& dout,
                          DeviceTensor const& q,
                          DeviceTensor const& k,
                          DeviceTensor const& v,
                          DeviceTensor const& out,
                          DeviceTensor const& lse,
                          std::int64_t window = 0) const {
    auto const shape = nn::detail::check_attention("attention_backward", out, lse, q, k, v, window);
    nn::detail::check_same("attention_backward", {&q, &dq, &dout});
    nn::detail::check_same("attention_backward", {&k, &dk, &dv});
    cu::attention_backward(*stream_,
                           cudnn(),
                           Attention,
                           stream_->device(),
                           scratch_,
                           shape,
                           dq,
                           dk,
                           dv,
                           dout,
                           q,
                           k,
                           v,
                           out,
                           lse);
  }

  void swiglu(DeviceTensor const& y, DeviceTensor const& gate, DeviceTensor const& up) const {
    nn::detail::check_same("swiglu", {&y, &gate, &up});
    cu::swiglu(*stream_, y, gate, up);
  }

  void swiglu_backward(DeviceTensor const& dgate,
                       DeviceTensor const& dup,
                       DeviceTensor const& y,
                       DeviceTensor const& dy,
                       DeviceTensor const& gate,
                       DeviceTensor const& up) const {
    nn::detail::check_same("swiglu_backward", {&dgate, &dup, &y, &dy, &gate, &up});
    cu::swiglu_backward(*stream_, dgate, dup, y, dy, gate, up);
  }

  void dropout(DeviceTensor const& y,
               DeviceTensor const& x,
               DeviceTensor const& addend,
               DropoutOptions const& options) const {
    nn::detail::check_dropout("dropout", y, x, addend, options);
    cu::dropout(*stream_, y, x, addend, options);
  }

  void embedding(DeviceTensor const& y,
                 DeviceTensor const& tokens,
                 DeviceTensor const& table) const {
    auto const e = nn::detail::check_embedding("embedding", y, tokens, table);
    cu::embedding(*stream_, e, y, tokens, table);
  }

  void embedding_backward(DeviceTensor const& dtable,
                          DeviceTensor const& dy,
                          DeviceTensor const& tokens) const {
    if (!dtable.present()) {
      return;
    }
    auto const e = nn::detail::check_embedding("embedding_backward", dy, tokens, dtable);
    nn::detail::check_sum("embedding_backward", dtable, nn::detail::extent(dtable.size()));
    cu::embedding_backward(*stream_, scratch_, e, dtable, dy, tokens);
  }

  void cross_entropy(DeviceTensor const& losses,
                     DeviceTensor const& lse,
                     DeviceTensor const& logits,
                     DeviceTensor const& labels,
                     std::int32_t padding) const {
    auto const e = nn::detail::check_logits("cross_entropy", logits, lse, labels);
    nn::detail::check_size("cross_entropy", losses, e.rows);
    cu::cross_entropy(*stream_, e, losses, lse, logits, labels, padding);
  }

  void cross_entropy_backward(DeviceTensor const& dlogits,
                              DeviceTensor const& logits,
                              DeviceTensor const& lse,
                              DeviceTensor const& labels,
                              std::int32_t padding,
                              double scale) const {
    auto const e = nn::detail::check_logits("cross_entropy_backward", logits, lse, labels);
    nn::detail::check_size("cross_entropy_backward", dlogits, e.rows * e.width);
    cu::cross_entropy_backward(*stream_, e, dlogits, logits, lse, labels, padding, scale);
  }

  void sum(DeviceSpan<double> total, DeviceTensor const& terms, double factor) const {
    nn::detail::check_floating("sum", terms);
    require(total.size() == 1, Errc::invalid_argument, "sum: the total must be one number");
    cu::sum(*stream_, total, terms, factor);
  }

 private:
  [[nodiscard]] MatmulAlgorithms& algorithms() const {
    return stream_->resources().template get<MatmulAlgorithms>();
  }
  [[nodiscard]] CudnnAttention& cudnn() const {
    return stream_->resources().template get<CudnnAttention>();
  }

  Stream* stream_;
  DeviceBytes scratch_;
};

/// The operations on a stream of \ref CudaBackend.
using CudaOps = BasicCudaOps<CudaStream>;

static_assert(Ops<CudaOps>);

}  // namespace roundpipe::cu
