// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/ops/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief Causal grouped-query attention on a CUDA device: by cuDNN where the program has it and it
/// can, else by our own kernels.
///
/// Each function only enqueues, on \c stream, whose device is \c device and current; tensors and
/// scratch must live until it has run. \c scratch has \ref attention_scratch_bytes() of the shape
/// or more and is aligned to 256 bytes. \c options must be those of the scratch; they say which way
/// is taken. \c cudnn must outlive the work. For a new shape cuDNN plans first, which takes up to a
/// second.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/attention/attention_cudnn.hpp>
#include <roundpipe/cuda/attention/attention_plan.hpp>
#include <roundpipe/cuda/kernels/attention_backward.cuh>
#include <roundpipe/cuda/kernels/attention_forward.cuh>

#include <cuda/stream_ref>

#include <initializer_list>
#include <string>

namespace roundpipe::cu {

namespace detail {

/// \throws Error (unsupported) for heads and types that no kernel computes, (invalid_argument) for
///         too little scratch.
inline void check_attention(char const* operation,
                            AttentionShape const& shape,
                            AttentionOptions options,
                            DeviceBytes scratch,
                            DeviceTensor const& lse,
                            std::initializer_list<DeviceTensor const*> tensors) {
  check_head_dim(operation, shape);
  bool good = shape.dtype != DType::f64 && is_floating(shape.dtype) && lse.dtype() == DType::f32;
  std::string types;
  for (auto const* tensor : tensors) {
    types.append(types.empty() ? "" : ", ").append(name_of(tensor->dtype()));
    good = good && tensor->dtype() == shape.dtype;
  }
  if (!good) {
    throw Error(Errc::unsupported,
                std::string(operation) + " of " + types + " with sums of " +
                    std::string(name_of(lse.dtype())) +
                    "; tensors are all f32, bf16 or f16, and sums f32");
  }
  require(scratch.size() >= attention_scratch_bytes(shape, options),
          Errc::invalid_argument,
          "attention has less scratch than attention_scratch_bytes()");
}

[[nodiscard]] inline bool is_empty(AttentionShape const& s) noexcept {
  return s.rows == 0 || s.length == 0 || s.heads == 0;
}

}  // namespace detail

/// The attention's output and its log-sum-exp; shapes and meaning as in AttentionOps.
/// \throws Error (unsupported) for an odd head size or one above 256, and for types other than f32,
///         bf16 and f16; all tensors but lse (f32) have the same one.
inline void attention(::cuda::stream_ref stream,
                      CudnnAttention& cudnn,
                      AttentionOptions options,
                      DeviceId device,
                      DeviceBytes scratch,
                      AttentionShape const& shape,
                      DeviceTensor const& out,
                      DeviceTensor const& lse,
                      DeviceTensor const& q,
                      DeviceTensor const& k,
                      DeviceTensor const& v) {
  detail::check_attention("attention", shape, options, scratch, lse, {&out, &q, &k, &v});
  if (detail::is_empty(shape)) {
    return;
  }
  if (options.cudnn && cudnn.forward(stream, device, scratch, shape, options, out, lse, q, k, v)) {
    return;
  }
  detail::attention_by_tiles(stream, shape, out, lse, q, k, v);
}

/// Its gradients, from the output and the log-sum-exp of \ref attention.
/// \throws Error likewise.
inline void attention_backward(::cuda::stream_ref stream,
                               CudnnAttention& cudnn,
                               AttentionOptions options,
                               DeviceId device,
                               DeviceBytes scratch,
                               AttentionShape const& shape,
                               DeviceTensor const& dq,
                               DeviceTensor const& dk,
                               DeviceTensor const& dv,
                               DeviceTensor const& dout,
                               DeviceTensor const& q,
                               DeviceTensor const& k,
                               DeviceTensor const& v,
                               DeviceTensor const& out,
                               DeviceTensor const& lse) {
  detail::check_attention(
      "attention_backward", shape, options, scratch, lse, {&dq, &dk, &dv, &dout, &q, &k, &v, &out});
  if (detail::is_empty(shape)) {
    return;
  }
  if (options.cudnn &&
      cudnn.backward(
          stream, device, scratch, shape, options, dq, dk, dv, dout, q, k, v, out, lse)) {
    return;
  }
  detail::attention_backward_by_tiles(stream, scratch, shape, dq, dk, dv, dout, q, k, v, out, lse);
}

}  // namespace roundpipe::cu
