// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/optim/update_pass.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void MasterStore::nearest(HostSpan<float const> weights, std::size_t begin) const {
  auto const place = master.part(begin, begin + weights.size());
  if (streams && master.dtype != DType::f32) {
    auto* const to = reinterpret_cast<std::uint16_t*>(place.data);
    if (master.dtype == DType::bf16) {
      for_each_element(weights.size(), Narrow<DType::bf16, true>{weights.data(), to});
    } else {
      for_each_element(weights.size(), Narrow<DType::f16, true>{weights.data(), to});
    }
  } else if (reinterpret_cast<float const*>(place.data) != weights.data()) {
    narrow(weights, master.dtype, place.bytes());
  }
}

ROUNDPIPE_INLINE void check_weights_and_master(HostArray const& weights, HostArray const& master) {
  require(weights.dtype == DType::f32 || weights.dtype == DType::bf16,
          Errc::invalid_argument,
          "weights must be f32 or bf16");
  require(!master.present() || master.size == weights.size,
          Errc::invalid_argument,
          "a master copy must have as many elements as the weights");
  require(
      weights.dtype == DType::f32
          ? !master.present() || is_convertible(master.dtype)
          : weights.size == 0 || (master.present() && master.dtype == DType::bf16),
      Errc::invalid_argument,
      "the master copy of f32 weights must be f32, bf16, f16 or absent, that of bf16 weights bf16");
}

ROUNDPIPE_INLINE void check_arrays(UpdateArrays const& arrays, std::size_t state_count) {
  auto const size = arrays.weights.size;
  require(arrays.states.size() == state_count && state_count <= max_update_states,
          Errc::invalid_argument,
          "an update needs as many states as its optimizer, and at most 8");
  require(arrays.gradient.size == size && is_convertible(arrays.gradient.dtype),
          Errc::invalid_argument,
          "a gradient must be f32, bf16 or f16 and have as many elements as the weights");
  for (auto const& state : arrays.states) {
    require(state.size == size && (state.dtype == DType::f32 || state.dtype == DType::bf16),
            Errc::invalid_argument,
            "a state must be f32 or bf16 and have as many elements as the weights");
  }
  check_weights_and_master(arrays.weights, arrays.master);
}

ROUNDPIPE_INLINE HostSpan<float> UpdateTiles::open(HostArray const& array,
                                                   std::size_t begin,
                                                   std::size_t count,
                                                   HostSpan<float> tile) {
  auto const part = array.part(begin, begin + count);
  if (part.dtype == DType::f32) {
    return {reinterpret_cast<float*>(part.data), count};
  }
  auto const values = tile.first(count);
  widen(part.bytes(), part.dtype, values, false);
  return values;
}

ROUNDPIPE_INLINE void store_floats(HostSpan<float const> weights,
                                   std::span<HostSpan<float> const> states,
                                   UpdateArrays const& arrays,
                                   MasterStore const& store,
                                   RoundingStream const& stream,
                                   std::size_t begin,
                                   std::uint64_t first) {
  auto const end = begin + weights.size();
  for (std::size_t k = 0; k < states.size(); ++k) {
    if (arrays.states[k].dtype == DType::bf16) {
      auto const place = arrays.states[k].part(begin, end);
      narrow_stochastically(states[k], place.data, false, stream, k + 1, first);
    }
  }
  if (arrays.weights.dtype == DType::bf16) {
    auto const place = store.master.part(begin, end);
    narrow_stochastically(weights, place.data, store.streams, stream, 0, first);
  } else if (store.master.present()) {
    store.nearest(weights, begin);
  }
}

ROUNDPIPE_INLINE bool are_bfloat16(UpdateArrays const& arrays) noexcept {
  return arrays.weights.dtype == DType::bf16 && arrays.gradient.dtype != DType::f16 &&
         std::all_of(arrays.states.begin(), arrays.states.end(), [](HostArray const& state) {
           return state.dtype == DType::bf16;
         });
}

}  // namespace detail

ROUNDPIPE_INLINE std::size_t widened_arrays(UpdateArrays const& arrays) noexcept {
  auto const is_widened = [](HostArray const& array) { return array.dtype != DType::f32; };
  auto const states = std::count_if(arrays.states.begin(), arrays.states.end(), is_widened);
  return static_cast<std::size_t>(states) + (is_widened(arrays.weights) ? 1U : 0U) +
         (is_widened(arrays.gradient) ? 1U : 0U);
}

ROUNDPIPE_INLINE void copy_pass(UpdateArrays const& arrays) {
  auto const& weights = arrays.weights;
  auto const& master = arrays.master;
  detail::check_weights_and_master(weights, master);
  if (!master.present() || weights.size == 0 || master.data == weights.data) {
    return;
  }
  if (weights.dtype == DType::bf16) {
    std::memcpy(master.data, weights.data, weights.bytes().size());
    return;
  }
  detail::MasterStore const store(weights, master);
  store.nearest({reinterpret_cast<float const*>(weights.data), weights.size}, 0);
  if (store.streams) {
    detail::stream_fence();
  }
}

}  // namespace roundpipe
