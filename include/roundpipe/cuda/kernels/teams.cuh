// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief Teams of lanes that compute one row together, and their sums.

#include <roundpipe/cuda/kernels/launch.cuh>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

namespace roundpipe::cu::detail {

inline constexpr int warp_lanes = 32;

/// The sum over each group of \p lanes neighbours, a power of two; every lane of a group gets it.
/// All lanes of the warp must call.
[[nodiscard]] __device__ inline float sum_over_lanes(float value, int lanes = warp_lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(~0U, value, step);
  }
  return value;
}

/// Teams of `blockDim.x` lanes (whole warps), one team a row, and `blockDim.y` teams a block: more
/// than one only if each is a single warp.
struct Teams {
  dim3 block;
  std::int64_t rows_per_block = 1;
};

/// Teams for rows of \p width elements, where each lane holds \p elements. A team has at most
/// \p most_lanes lanes, so that longer rows do not fit in it.
[[nodiscard]] inline Teams teams_for(std::int64_t width, int elements, int most_lanes) noexcept {
  constexpr int threads = 256;
  auto const warps =
      std::clamp<std::int64_t>(divide_up(width, elements * warp_lanes), 1, most_lanes / warp_lanes);
  unsigned const rows = warps == 1 ? threads / warp_lanes : 1;
  return {dim3(static_cast<unsigned>(warps) * warp_lanes, rows), rows};
}

/// Sums over a team. Consecutive sums of a block must name different \p Slots.
class TeamSum {
 public:
  /// Shared memory of one sum.
  struct Slots {
    float2 warps[warp_lanes];
  };

  /// Both sums, in every lane of the team. All lanes of the block must call.
  [[nodiscard]] __device__ static float2 of(float2 value, Slots& slots) {
    value = over_warp(value);
    if (blockDim.x > warp_lanes) {
      int const lane = static_cast<int>(threadIdx.x) % warp_lanes;
      if (lane == 0) {
        slots.warps[threadIdx.x / warp_lanes] = value;
      }
      __syncthreads();
      value =
          lane < static_cast<int>(blockDim.x) / warp_lanes ? slots.warps[lane] : make_float2(0, 0);
      value = over_warp(value);
    }
    return value;
  }

 private:
  [[nodiscard]] __device__ static float2 over_warp(float2 value) {
    return make_float2(sum_over_lanes(value.x), sum_over_lanes(value.y));
  }
};

}  // namespace roundpipe::cu::detail
