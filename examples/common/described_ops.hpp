// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Operations without a device: layers made of them describe themselves, and never run.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/attention/attention_plan.hpp>

#include <algorithm>
#include <cstdint>

namespace examples {

/// Layers of these operations need the bytes that they need with `cu::CudaOps` and cuDNN. No
/// operation is defined, because none is called.
class DescribedOps {
 public:
  using Stream = struct NoStream {};
  using T = roundpipe::DeviceTensor;
  using Bytes = roundpipe::Bytes;

  DescribedOps(Stream&, roundpipe::DeviceBytes) {}

  /// cuBLASLt's, as `cu::matmul_scratch_bytes()`, which includes the toolkit.
  [[nodiscard]] static Bytes linear_scratch_bytes() noexcept { return Bytes{32} << 20; }
  /// At most 8.3 MiB up to a width of 16384: a product of the same layer needs more.
  [[nodiscard]] static Bytes norm_scratch_bytes(std::int64_t, std::int64_t) noexcept { return 0; }
  /// At most 1 MiB, or one row's gradient: likewise.
  [[nodiscard]] static Bytes bias_scratch_bytes(std::int64_t, std::int64_t) noexcept { return 0; }
  [[nodiscard]] static Bytes attention_scratch_bytes(roundpipe::AttentionShape const& shape) {
    return std::max(roundpipe::cu::attention_scratch_bytes(shape),
                    roundpipe::align_up(roundpipe::cu::detail::cudnn_scratch_bytes(shape, {})));
  }
  /// Of the sort of tokens: two arrays and their copies, and flags.
  [[nodiscard]] static Bytes embedding_scratch_bytes(std::int64_t tokens,
                                                     std::int64_t,
                                                     std::int64_t) noexcept {
    return (Bytes{64} << 10) + 17 * roundpipe::align_up(static_cast<Bytes>(tokens));
  }

  void linear(T const&, T const&, T const&, T const&, double = 1) const;
  void linear_input_gradient(T const&, T const&, T const&, T const&, double = 1) const;
  void linear_weight_gradient(T const&, T const&, T const&) const;
  void add_bias(T const&, T const&, T const&) const;
  void bias_gradient(T const&, T const&) const;
  void rms_norm(T const&, T const&, T const&, double) const;
  void rms_norm_backward(T const&, T const&, T const&, T const&, T const&, T const&, double) const;
  void rotary(T const&, T const&, T const&, roundpipe::RotaryOptions) const;
  void rotary_backward(
      T const&, T const&, T const&, T const&, T const&, roundpipe::RotaryOptions) const;
  void attention(T const&, T const&, T const&, T const&, T const&, std::int64_t) const;
  void attention_backward(T const&,
                          T const&,
                          T const&,
                          T const&,
                          T const&,
                          T const&,
                          T const&,
                          T const&,
                          T const&,
                          std::int64_t) const;
  void swiglu(T const&, T const&, T const&) const;
  void swiglu_backward(T const&, T const&, T const&, T const&, T const&, T const&) const;
  void dropout(T const&, T const&, T const&, roundpipe::DropoutOptions) const;
  void embedding(T const&, T const&, T const&) const;
  void embedding_backward(T const&, T const&, T const&) const;
  void cross_entropy(T const&, T const&, T const&, T const&, std::int32_t) const;
  void cross_entropy_backward(T const&, T const&, T const&, T const&, std::int32_t, double) const;
  void sum(roundpipe::DeviceSpan<double>, T const&, double) const;
};

static_assert(roundpipe::Ops<DescribedOps>);

}  // namespace examples
