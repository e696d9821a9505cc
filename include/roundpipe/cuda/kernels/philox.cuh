// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief The random words of core/random.hpp, drawn in kernels.

#include <roundpipe/core/random.hpp>

#include <cuda/std/array>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace roundpipe::cu::detail {

/// The hash of a key, made on the host once a call: Philox's own key, and half of its counter.
struct DerivedKey {
  ::cuda::std::array<std::uint32_t, 2> key;
  ::cuda::std::array<std::uint32_t, 2> counter;

  explicit DerivedKey(RandomKey const& from) noexcept {
    auto const words = philox(
        {from.step, from.layer, from.micro_batch, from.stream},
        {static_cast<std::uint32_t>(from.seed), static_cast<std::uint32_t>(from.seed >> 32)});
    key = {words[0], words[1]};
    counter = {words[2], words[3]};
  }
};

/// The four words of block \p block of the stream \p derived, the same as
/// \ref roundpipe::random_block gives on the host (Salmon et al. 2011, section 3.3).
[[nodiscard]] __device__ inline ::cuda::std::array<std::uint32_t, 4> random_words(
    DerivedKey const& derived, std::uint64_t block) {
  auto c0 = static_cast<std::uint32_t>(block);
  auto c1 = static_cast<std::uint32_t>(block >> 32);
  auto c2 = derived.counter[0];
  auto c3 = derived.counter[1];
  auto k0 = derived.key[0];
  auto k1 = derived.key[1];
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    auto const p0 = std::uint64_t{0xD2511F53U} * c0;
    auto const p1 = std::uint64_t{0xCD9E8D57U} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return {c0, c1, c2, c3};
}

}  // namespace roundpipe::cu::detail
