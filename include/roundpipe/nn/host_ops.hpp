// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The operations of the reference layers on the host, with Eigen.

#include <roundpipe/backend/host_stream.hpp>
#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/host_attention.hpp>
#include <roundpipe/nn/host_bias.hpp>
#include <roundpipe/nn/host_elementwise.hpp>
#include <roundpipe/nn/host_linear.hpp>
#include <roundpipe/nn/host_norm.hpp>
#include <roundpipe/nn/host_rotary.hpp>
#include <roundpipe/nn/host_tokens.hpp>
#include <roundpipe/nn/op_checks.hpp>

#include <concepts>
#include <cstdint>

namespace roundpipe::nn {

/// \ref roundpipe::Ops on a stream of the host backend. Each operation is one function that the
/// thread of the stream runs. The concept says what the operations mean and throw.
///
/// Operations compute in \p Scalar. An operation converts tensors of other floating types when it
/// loads them, and rounds to nearest even when it stores them: bf16 and f16 go well with float. It
/// uses tensors of type \p Scalar in place. Products run on the stream's thread alone (build
/// without OpenMP, or Eigen would use OpenMP's threads), so equal inputs give equal bits on one
/// machine. On a machine with other caches, Eigen may split sums differently.
///
/// \tparam StreamType has `launch(f)`, which runs f after the earlier work.
template <std::floating_point Scalar, class StreamType = HostStream>
class HostOps {
 public:
  using Stream = StreamType;

  /// A handle for operations on \p stream, which must outlive the handle. Host operations do not
  /// use \p scratch: each takes memory of the thread that runs it.
  explicit HostOps(Stream& stream, DeviceBytes scratch = {}) noexcept : stream_(&stream) {
    static_cast<void>(scratch);
  }

  static Bytes linear_scratch_bytes() noexcept { return 0; }
  static Bytes bias_scratch_bytes(std::int64_t /*rows*/, std::int64_t /*width*/) noexcept {
    return 0;
  }
  static Bytes norm_scratch_bytes(std::int64_t /*vectors*/, std::int64_t /*width*/) noexcept {
    return 0;
  }
  static Bytes attention_scratch_bytes(AttentionShape const& /*shape*/) noexcept { return 0; }
  static Bytes embedding_scratch_bytes(std::int64_t /*tokens*/,
                                       std::int64_t /*vocabulary*/,
                                       std::int64_t /*width*/) noexcept {
    return 0;
  }

  void linear(DeviceTensor const& y,
              DeviceTensor const& x,
              DeviceTensor const& weight,
              DeviceTensor const& addend = absent,
              double scale = 1) const {
    auto const e = detail::check_linear("linear", y, x, weight);
    detail::check_optional("linear", addend, e.rows * e.out);
    stream_->launch(
        [=] { detail::run_linear(e, y, x, weight, addend, static_cast<Scalar>(scale)); });
  }

  void linear_input_gradient(DeviceTensor const& dx,
                             DeviceTensor const& dy,
                             DeviceTensor const& weight,
                             DeviceTensor const& addend = absent,
                             double scale = 1) const {
    auto const e = detail::check_linear("linear_input_gradient", dy, dx, weight);
    detail::check_optional("linear_input_gradient", addend, e.rows * e.in);
    stream_->launch([=] {
      detail::run_linear_input_gradient(e, dx, dy, weight, addend, static_cast<Scalar>(scale));
    });
  }

  void linear_weight_gradient(DeviceTensor const& dweight,
                              DeviceTensor const& dy,
                              DeviceTensor const& x) const {
    if (!dweight.present()) {
      return;
    }
    auto const e = detail::check_linear("linear_weight_gradient", dy, x, dweight);
    detail::check_sum("linear_weight_gradient", dweight, e.in * e.out);
    stream_->launch([=] { detail::run_linear_weight_gradient<Scalar>(e, dweight, dy, x); });
  }

  void add_bias(DeviceTensor const& y,
                DeviceTensor const& bias,
                DeviceTensor const& addend = absent) const {
    auto const e = detail::check_bias("add_bias", y, bias, addend);
    stream_->launch([=] { detail::run_add_bias<Scalar>(e, y, bias, addend); });
  }

  void bias_gradient(DeviceTensor const& dbias, DeviceTensor const& dy) const {
    if (!dbias.present()) {
      return;
    }
    auto const e = detail::check_bias("bias_gradient", dy, dbias, absent);
    detail::check_sum("bias_gradient", dbias, e.width);
    stream_->launch([=] { detail::run_bias_gradient<Scalar>(e, dbias, dy); });
  }

  void rms_norm(DeviceTensor const& y,
                DeviceTensor const& x,
                DeviceTensor const& gain,
                double epsilon) const {
    auto const e = detail::check_norm("rms_norm", y, x, gain);
    stream_->launch([=] { detail::run_rms_norm(e, y, x, gain, static_cast<Scalar>(epsilon)); });
  }

  void rms_norm_backward(DeviceTensor const& dx,
                         DeviceTensor const& dgain,
                         DeviceTensor const& dy,
                         DeviceTensor const& x,
                         DeviceTensor const& gain,
                         DeviceTensor const& addend,
                         double epsilon) const {
    auto const e = detail::check_norm("rms_norm_backward", dy, x, gain);
    detail::check_optional_sum("rms_norm_backward", dgain, e.width);
    detail::check_optional("rms_norm_backward", dx, e.rows * e.width);
    detail::check_optional("rms_norm_backward", addend, e.rows * e.width);
    stream_->launch([=] {
      detail::run_rms_norm_backward(
          e, dx, dgain, dy, x, gain, addend, static_cast<Scalar>(epsilon));
    });
  }

  void rotary(DeviceTensor const& y,
              DeviceTensor const& x,
              DeviceTensor const& gain,
              RotaryOptions const& options) const {
    detail::check_rotary("rotary", y, x, gain);
    stream_->launch([=] { detail::run_rotary<Scalar>(y, x, gain, options); });
  }

  void rotary_backward(DeviceTensor const& dx,
                       DeviceTensor const& dgain,
                       DeviceTensor const& dy,
                       DeviceTensor const& x,
                       DeviceTensor const& gain,
                       RotaryOptions const& options) const {
    detail::check_rotary("rotary_backward", dx, dy, gain);
    if (gain.present()) {
      detail::check_size("rotary_backward", x, detail::extent(dy.size()));
      detail::check_optional_sum("rotary_backward", dgain, detail::extent(gain.size()));
    }
    stream_->launch([=] { detail::run_rotary_backward<Scalar>(dx, dgain, dy, x, gain, options); });
  }

  void attention(DeviceTensor const& out,
                 DeviceTensor const& lse,
                 DeviceTensor const& q,
                 DeviceTensor const& k,
                 DeviceTensor const& v,
                 std::int64_t window = 0) const {
    auto const shape = detail::check_attention("attention", out, lse, q, k, v, window);
    stream_->launch([=] { detail::run_attention<Scalar>(shape, out, lse, q, k, v); });
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
    auto const shape = detail::check_attention("attention_backward", out, lse, q, k, v, window);
    detail::check_same("attention_backward", {&q, &dq, &dout});
    detail::check_same("attention_backward", {&k, &dk, &dv});
    stream_->launch([=] {
      detail::run_attention_backward<Scalar>(shape, dq, dk, dv, dout, q, k, v, out, lse);
    });
  }

  void swiglu(DeviceTensor const& y, DeviceTensor const& gate, DeviceTensor const& up) const {
    detail::check_same("swiglu", {&y, &gate, &up});
    stream_->launch([=] { detail::run_swiglu<Scalar>(y, gate, up); });
  }

  void swiglu_backward(DeviceTensor const& dgate,
                       DeviceTensor const& dup,
                       DeviceTensor const& y,
                       DeviceTensor const& dy,
                       DeviceTensor const& gate,
                       DeviceTensor const& up) const {
    detail::check_same("swiglu_backward", {&dgate, &dup, &y, &dy, &gate, &up});
    stream_->launch([=] { detail::run_swiglu_backward<Scalar>(dgate, dup, y, dy, gate, up); });
  }

  void dropout(DeviceTensor const& y,
               DeviceTensor const& x,
               DeviceTensor const& addend,
               DropoutOptions const& options) const {
    detail::check_dropout("dropout", y, x, addend, options);
    stream_->launch([=] { detail::run_dropout<Scalar>(y, x, addend, options); });
  }

  void embedding(DeviceTensor const& y,
                 DeviceTensor const& tokens,
                 DeviceTensor const& table) const {
    auto const e = detail::check_embedding("embedding", y, tokens, table);
    stream_->launch([=] { detail::run_embedding(e, y, tokens, table); });
  }

  void embedding_backward(DeviceTensor const& dtable,
                          DeviceTensor const& dy,
                          DeviceTensor const& tokens) const {
    if (!dtable.present()) {
      return;
    }
    auto const e = detail::check_embedding("embedding_backward", dy, tokens, dtable);
    detail::check_sum("embedding_backward", dtable, detail::extent(dtable.size()));
    stream_->launch([=] { detail::run_embedding_backward(e, dtable, dy, tokens); });
  }

  void cross_entropy(DeviceTensor const& losses,
                     DeviceTensor const& lse,
                     DeviceTensor const& logits,
                     DeviceTensor const& labels,
                     std::int32_t padding) const {
    auto const e = detail::check_logits("cross_entropy", logits, lse, labels);
    detail::check_size("cross_entropy", losses, e.rows);
    stream_->launch(
        [=] { detail::run_cross_entropy<Scalar>(e, losses, lse, logits, labels, padding); });
  }

  void cross_entropy_backward(DeviceTensor const& dlogits,
                              DeviceTensor const& logits,
                              DeviceTensor const& lse,
                              DeviceTensor const& labels,
                              std::int32_t padding,
                              double scale) const {
    auto const e = detail::check_logits("cross_entropy_backward", logits, lse, labels);
    detail::check_size("cross_entropy_backward", dlogits, e.rows * e.width);
    stream_->launch([=] {
      detail::run_cross_entropy_backward(
          e, dlogits, logits, lse, labels, padding, static_cast<Scalar>(scale));
    });
  }

  void sum(DeviceSpan<double> total, DeviceTensor const& terms, double factor) const {
    detail::check_floating("sum", terms);
    require(total.size() == 1, Errc::invalid_argument, "sum: the total must be one number");
    stream_->launch([=] { detail::run_sum(total, terms, factor); });
  }

 private:
  Stream* stream_;
};

static_assert(Ops<HostOps<float>> && Ops<HostOps<double>>);

}  // namespace roundpipe::nn
