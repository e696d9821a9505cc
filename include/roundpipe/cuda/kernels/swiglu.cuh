// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief SwiGLU on the GPU (Shazeer 2020, eq. 5), and its gradients.

#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace roundpipe::cu {

namespace detail {

/// 1 / (1 + exp(-z)), by fast functions. Their error, a few ulp times |z|, is far below the
/// rounding of a 16-bit type, and about 1e-6 in f32 where the result is not negligible.
[[nodiscard]] __device__ inline float sigmoid(float z) {
  return __fdividef(1.0F, 1.0F + exponential(-z));
}

template <class X>
__global__ void __launch_bounds__(flat_threads)
    swiglu_kernel(std::int64_t size, X y, X gate, X up) {
  for_each_pack<X>(size, [&](std::int64_t at, int count) {
    auto z = gate.load(at, count);
    auto const factor = load_pack(up, at, count);
    auto v = X::widen(z);
#pragma unroll
    for (int i = 0; i < X::size; ++i) {
      v[i] = v[i] * sigmoid(v[i]) * factor[i];
    }
    y.store(at, v, count);
  });
}

/// dgate, dup, and y again. It reads a pack before it writes there, so that dup may be dy.
template <class X>
__global__ void __launch_bounds__(flat_threads)
    swiglu_backward_kernel(std::int64_t size, X dgate, X dup, X y, X dy, X gate, X up) {
  for_each_pack<X>(size, [&](std::int64_t at, int count) {
    auto const gradients = dy.load(at, count);
    auto const gates = gate.load(at, count);
    auto const ups = up.load(at, count);
    auto d = X::widen(gradients);
    auto z = X::widen(gates);
    auto u = X::widen(ups);
#pragma unroll
    for (int i = 0; i < X::size; ++i) {
      auto const s = sigmoid(z[i]);
      auto const silu = z[i] * s;
      auto const to_gate = d[i] * u[i] * s * fmaf(z[i], 1 - s, 1.0F);
      u[i] *= silu;  // y
      d[i] *= silu;  // dup
      z[i] = to_gate;
    }
    dgate.store(at, z, count);
    dup.store(at, d, count);
    y.store(at, u, count);
  });
}

}  // namespace detail

/// Enqueues y = silu(gate) up over as many elements as \p y has; y may be gate. Tensors are of f32,
/// bf16 or f16 and must live until the work has run. Does not synchronize.
/// \throws Error (unsupported) for other types.
template <detail::OnUse = detail::OnUse::compiled>
void swiglu(::cuda::stream_ref stream,
            DeviceTensor const& y,
            DeviceTensor const& gate,
            DeviceTensor const& up) {
  detail::check_types("swiglu", {&y, &gate, &up});
  auto const size = static_cast<std::int64_t>(y.size());
  detail::visit_views({&y, &gate, &up}, 0, [&]<class X>(detail::Tag<X>) {
    detail::launch_flat<X>(
        "swiglu", stream, size, detail::swiglu_kernel<X>, size, X(y), X(gate), X(up));
  });
}

/// Enqueues the gradients of \ref swiglu, and its result again; dup may be dy. Otherwise as swiglu.
template <detail::OnUse = detail::OnUse::compiled>
void swiglu_backward(::cuda::stream_ref stream,
                     DeviceTensor const& dgate,
                     DeviceTensor const& dup,
                     DeviceTensor const& y,
                     DeviceTensor const& dy,
                     DeviceTensor const& gate,
                     DeviceTensor const& up) {
  detail::check_types("swiglu_backward", {&dgate, &dup, &y, &dy, &gate, &up});
  auto const size = static_cast<std::int64_t>(y.size());
  detail::visit_views({&dgate, &dup, &y, &dy, &gate, &up}, 0, [&]<class X>(detail::Tag<X>) {
    detail::launch_flat<X>("swiglu_backward",
                           stream,
                           size,
                           detail::swiglu_backward_kernel<X>,
                           size,
                           X(dgate),
                           X(dup),
                           X(y),
                           X(dy),
                           X(gate),
                           X(up));
  });
}

}  // namespace roundpipe::cu
