// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief Dropout on the GPU, by the same random words as on the host.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>
#include <roundpipe/cuda/kernels/philox.cuh>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>

namespace roundpipe::cu {

namespace detail {

/// y = x m / (1 - rate) + c; element i stays where the upper 24 bits of word i reach \p threshold.
template <class X>
__global__ void __launch_bounds__(flat_threads) dropout_kernel(
    std::int64_t size, X y, X x, X c, DerivedKey key, std::uint32_t threshold, float keep) {
  static_assert(X::size % 4 == 0);  // whole blocks of words
  for_each_pack<X>(size, [&](std::int64_t at, int count) {
    auto const values = x.load(at, count);
    Pack<X::size> addend;
    addend.fill(-0.0F);  // adding it changes nothing, not even the sign of a zero
    if (c.present()) {
      addend = load_pack(c, at, count);
    }
    auto v = X::widen(values);
#pragma unroll
    for (int block = 0; block < X::size / 4; ++block) {
      auto const words = random_words(key, static_cast<std::uint64_t>(at / 4 + block));
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        auto const i = 4 * block + j;
        auto const factor = words[j] >> 8 < threshold ? 0.0F : keep;
        v[i] = fmaf(v[i], factor, addend[i]);
      }
    }
    y.store(at, v, count);
  });
}

}  // namespace detail

/// Enqueues y = x m / (1 - rate) + c, m drawn by element; c is optional, y may be x or c. Tensors
/// are of f32, bf16 or f16 and must live until the work has run. Does not synchronize.
/// \throws Error (unsupported) for other types.
template <detail::OnUse = detail::OnUse::compiled>
void dropout(::cuda::stream_ref stream,
             DeviceTensor const& y,
             DeviceTensor const& x,
             DeviceTensor const& c,
             DropoutOptions const& options) {
  detail::check_types("dropout", {&y, &x, &c});
  auto const size = static_cast<std::int64_t>(y.size());
  // uniform(word) is (word >> 8) / 2^24, so it is below the rate if and only if:
  auto const threshold = static_cast<std::uint32_t>(std::ceil(options.rate * 0x1p24));
  detail::visit_views({&y, &x, &c}, 0, [&]<class X>(detail::Tag<X>) {
    detail::launch_flat<X>("dropout",
                           stream,
                           size,
                           detail::dropout_kernel<X>,
                           size,
                           X(y),
                           X(x),
                           X(c),
                           detail::DerivedKey(options.key),
                           threshold,
                           static_cast<float>(1.0 / (1.0 - options.rate)));
  });
}

}  // namespace roundpipe::cu
