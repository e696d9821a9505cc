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

ROUNDPIPE_INLINE HostSpan<float> UpdateTiles::open(HostArray const& array,
                                                   std::size_t begin,
                                                   std::size_t count,
                                                   Tile& tile) {
  auto const part = array.part(begin, begin + count);
  if (part.dtype == DType::f32) {
    return {reinterpret_cast<float*>(part.data), count};
  }
  HostSpan<float> const values(tile.data(), count);
  widen(part.bytes(), part.dtype, values, false);
  return values;
}

ROUNDPIPE_INLINE bool are_bfloat16(UpdateArrays const& arrays) noexcept {
  return arrays.weights.dtype == DType::bf16 && arrays.gradient.dtype != DType::f16 &&
         std::all_of(arrays.states.begin(), arrays.states.end(), [](HostArray const& state) {
           return state.dtype == DType::bf16;
         });
}

}  // namespace detail

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
