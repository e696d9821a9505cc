// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief What rotary position embedding and its gradient share on the GPU: the plan of a launch,
/// the angles, and the walk over heads.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>
#include <roundpipe/cuda/kernels/teams.cuh>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace roundpipe::cu::detail {

inline constexpr int rotary_threads = 256;
inline constexpr int rotary_elements = 8;  ///< Of one half of a head, that a lane holds.
inline constexpr int rotary_most_width = 2 * rotary_elements * warp_lanes;

/// How blocks share the work. Each takes runs of consecutive positions, computes the angles of a
/// run once in shared memory, and gives the heads to teams of lanes.
struct RotaryPlan {
  std::int64_t positions = 0;  ///< Of all rows.
  std::int64_t length = 0;     ///< Of a row.
  std::int64_t runs = 0;
  int heads = 0;
  int half = 0;         ///< Of head_dim.
  int run = 0;          ///< Positions of one.
  int lanes = 0;        ///< Of a team; a power of two.
  double exponent = 0;  ///< The frequency of pair i is 2^(i exponent), before the blend.
  RotaryBlend blend;
  double inverse_factor = 1;  ///< Of the blend.
  float epsilon = 0;
};

/// By how many half turns pair \p i turns from one position to the next.
[[nodiscard]] __device__ inline double half_turns_of(RotaryPlan const& plan, int i) {
  constexpr double inverse_pi = 0.318309886183790671538;
  auto const& blend = plan.blend;
  auto const frequency = exp2(i * plan.exponent);
  auto const kept = fmin(
      1.0, fmax(0.0, blend.kept + blend.kept_by_pair * i + blend.kept_by_frequency * frequency));
  return frequency * (kept + (1 - kept) * plan.inverse_factor) * inverse_pi;
}

/// For each position of run number \p run, the cosines of all pairs and then their sines, times the
/// amplitude, in shared memory.
__device__ inline void fill_turns(float* turns, RotaryPlan const& plan, std::int64_t run) {
  auto const amplitude = static_cast<float>(plan.blend.amplitude);
  for (int i = static_cast<int>(threadIdx.x); i < plan.run * plan.half; i += rotary_threads) {
    auto const pair = i % plan.half;
    auto const position = (run * plan.run + i / plan.half) % plan.length;
    auto* const at = turns + 2 * i - pair;
    // In double: at position 10^5 an angle in float has only two digits left.
    auto const half_turns = static_cast<double>(position) * half_turns_of(plan, pair);
    auto const within_one = static_cast<float>(half_turns - 2 * rint(half_turns / 2));
    float sine = 0;
    float cosine = 0;
    sincospif(within_one, &sine, &cosine);
    at[0] = amplitude * cosine;
    at[plan.half] = amplitude * sine;
  }
}

/// What a lane holds of one head: packs of the first half, and the packs of the second half that
/// rotate with them.
template <class View>
struct HeadPacks {
  static constexpr int held = rotary_elements / View::size;

  typename View::Raw first[held];
  typename View::Raw second[held];

  /// What \p lane holds of the head at \p begin; zeros where \p there is false.
  __device__ void load(
      View const& from, std::int64_t begin, RotaryPlan const& plan, int lane, bool there = true) {
#pragma unroll
    for (int k = 0; k < held; ++k) {
      auto const at = (lane + k * plan.lanes) * View::size;
      if (auto const count = count_at<View>(at, plan.half); there && count > 0) {
        first[k] = from.load(begin + at, count);
        second[k] = from.load(begin + plan.half + at, count);
      } else {
        first[k] = second[k] = typename View::Raw{};
      }
    }
  }
};

/// Cosines and sines of the pairs of a pack.
template <class View>
struct Turn {
  Pack<View::size> cosine{};
  Pack<View::size> sine{};

  /// Of \p count pairs from \p at on, at the position whose turns begin at \p turn.
  __device__ Turn(float const* turn, int at, int count, RotaryPlan const& plan) {
    if constexpr (View::whole) {
      if (count > 0) {
#pragma unroll
        for (int i = 0; i < View::size; i += 4) {
          auto const c = *reinterpret_cast<float4 const*>(turn + at + i);
          auto const s = *reinterpret_cast<float4 const*>(turn + plan.half + at + i);
          cosine[i] = c.x, cosine[i + 1] = c.y, cosine[i + 2] = c.z, cosine[i + 3] = c.w;
          sine[i] = s.x, sine[i + 1] = s.y, sine[i + 2] = s.z, sine[i + 3] = s.w;
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < View::size; ++i) {
        if (i < count) {
          cosine[i] = turn[at + i];
          sine[i] = turn[plan.half + at + i];
        }
      }
    }
  }
};

/// Calls \p f(begin, turn, lane, active) for every head of the block's runs: begin is the head's
/// offset, turn holds the cosines and sines of its position, and active says whether the lane's
/// team has a head. All lanes of a warp make the same calls.
template <class F>
__device__ inline void for_each_head(float* turns, RotaryPlan const& plan, F&& f) {
  int const teams = rotary_threads / plan.lanes;
  int const team = static_cast<int>(threadIdx.x) / plan.lanes;
  int const lane = static_cast<int>(threadIdx.x) % plan.lanes;
  for (std::int64_t run = blockIdx.x; run < plan.runs; run += gridDim.x) {
    __syncthreads();  // all have read the turns of the run before
    fill_turns(turns, plan, run);
    __syncthreads();
    auto const first = run * plan.run;
    auto const left = plan.positions - first;
    int const items = static_cast<int>(left < plan.run ? left : plan.run) * plan.heads;
    for (int base = 0; base < items; base += teams) {
      int const item = base + team;
      bool const active = item < items;
      auto const begin = (first * plan.heads + (active ? item : 0)) * (2 * plan.half);
      f(begin, turns + (active ? item / plan.heads : 0) * 2 * plan.half, lane, active);
    }
  }
}

/// \throws Error (unsupported) for heads that no team can hold.
template <class View>
[[nodiscard]] RotaryPlan rotary_plan(char const* operation,
                                     Shape const& shape,
                                     RotaryOptions const& options) {
  if (shape[3] > rotary_most_width) {
    throw Error(Errc::unsupported,
                std::string(operation) + ": a GPU turns heads of up to " +
                    std::to_string(rotary_most_width) + " elements, not of " +
                    std::to_string(shape[3]));
  }
  RotaryPlan plan;
  plan.positions = shape[0] * shape[1];
  plan.length = shape[1];
  plan.heads = static_cast<int>(shape[2]);
  plan.half = static_cast<int>(shape[3] / 2);
  plan.run = std::max(1, rotary_threads / plan.half);
  plan.runs = divide_up(plan.positions, plan.run);
  auto const packs = divide_up(plan.half, View::size);
  plan.lanes = static_cast<int>(
      std::bit_ceil(static_cast<unsigned>(divide_up(packs, HeadPacks<View>::held))));
  plan.exponent = -std::log2(options.theta) / plan.half;
  plan.blend = options.blend;
  plan.inverse_factor = 1 / options.blend.factor;
  plan.epsilon = static_cast<float>(options.epsilon);
  return plan;
}

/// Shared memory of a block: the turns, and after them the warps' sums of the gain's gradient.
[[nodiscard]] inline std::size_t rotary_shared_bytes(RotaryPlan const& plan) noexcept {
  auto const half = static_cast<std::size_t>(plan.half);
  return std::max(static_cast<std::size_t>(plan.run) * 2 * half * sizeof(float),
                  rotary_threads / warp_lanes * 2 * half * sizeof(float));
}

}  // namespace roundpipe::cu::detail
