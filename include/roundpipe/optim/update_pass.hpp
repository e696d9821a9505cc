// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief One pass over a part of a parameter that reads the gradient in its type, updates weights
/// and states, and writes the master copy, touching every byte of memory once.
/// Memory bandwidth limits an update. With bf16 gradients and master copy and AdamW's three fp32
/// arrays, a parameter costs 28 bytes of traffic: 2 + 3 * 4 read, 3 * 4 + 2 written. The pass goes
/// tile by tile; converted values stay in tiles on the stack, that is, in the L1 cache.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/optim/stochastic_rounding.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace roundpipe {

/// The number of elements that \ref update_pass handles at a time.
inline constexpr std::size_t update_tile_size = 1024;

/// The largest number of state arrays of an optimizer in \ref update_pass.
inline constexpr std::size_t max_update_states = 8;

/// Passes over at least this many elements write the master copy past the caches.
inline constexpr std::size_t streaming_pass_size = std::size_t{64} << 10U;

/// \brief The arrays of one update; all present arrays have the same number of elements.
/// Arrays do not overlap, except that bf16 or f32 weights may be their own master copy.
struct UpdateArrays {
  /// Read; f32 or bf16. f32 weights are updated in place. bf16 weights are not written here: the
  /// new weights go to \c master alone, which may be the same memory.
  HostArray weights;
  HostArray gradient;                 ///< Read; f32, bf16 or f16.
  std::span<HostArray const> states;  ///< Read and written; f32 or bf16.
  /// Written, never read: the new weights. With f32 weights: f32, bf16, f16 or absent. With bf16
  /// weights: bf16.
  HostArray master;
};

namespace detail {

/// How to write a master copy.
struct MasterStore {
  HostArray master;
  bool streams;  ///< Past the caches.

  MasterStore(HostArray const& weights, HostArray const& copy) noexcept
      : master(copy),
        streams(copy.present() && copy.data != weights.data && copy.size >= streaming_pass_size &&
                reinterpret_cast<std::uintptr_t>(copy.data) % 64 == 0) {}

  /// Writes \p weights, rounded to nearest, to the elements from \p begin on.
  void nearest(HostSpan<float const> weights, std::size_t begin) const;
};

/// Narrows fp32 to bf16 elements from \p to on, at random.
void narrow_stochastically(HostSpan<float const> values,
                           std::byte* to,
                           bool streams,
                           RoundingStream const& stream,
                           std::uint32_t first);

/// \throws Error (invalid_argument) unless \p weights and \p master match.
void check_weights_and_master(HostArray const& weights, HostArray const& master);

/// The update of \p optimizer with \p context.
template <Optimizer O>
[[nodiscard]] auto prepared(O const& optimizer, UpdateContext const& context) {
  if constexpr (requires { optimizer.prepared(context); }) {
    return optimizer.prepared(context);
  } else {
    return [&](HostSpan<float> weights,
               HostSpan<float const> gradient,
               std::span<HostSpan<float> const> states) {
      optimizer.update(context, weights, gradient, states);
    };
  }
}

/// The fp32 tiles of a pass.
class UpdateTiles {
 public:
  using Tile = std::array<float, update_tile_size>;

  /// The elements of \p array from \p begin on as floats: in place, or converted to \p tile.
  static HostSpan<float> open(HostArray const& array,
                              std::size_t begin,
                              std::size_t count,
                              Tile& tile);

  alignas(64) Tile weights;
  alignas(64) Tile gradient;
  alignas(64) std::array<Tile, max_update_states> states;
};

}  // namespace detail

/// \brief Updates a part of a parameter: one call of \p optimizer's `update` for each tile, on
/// floats.
/// An optimizer may opt in to `prepared(context)`, which returns a function of weights, gradient
/// and states with the same results as `update(context, ...)`, bit by bit. The pass then calls that
/// function instead.
/// f32 weights are rounded to nearest, ties to even, for the master copy. bf16 values that are also
/// state (bf16 weights on their way to the master copy, bf16 states) are rounded at random, as
/// `stochastic_rounding.hpp` says, with \p rounding, the number of the array (weights 0, states 1
/// and up) and the index of the element in the whole parameter; \p first_element is the index of
/// the part's first element. The bits therefore do not depend on cuts or threads. Several threads
/// may update different parts at once. Each step of each parameter needs its own \p rounding.
/// Blocking. Large parts whose master copy begins at a multiple of 64 bytes are written past the
/// caches; these writes are visible to every thread that learns of the call's return.
/// \throws Error (invalid_argument) when sizes, types or the number of states do not match \ref
/// UpdateArrays; also the errors of \p optimizer.
template <Optimizer O>
void update_pass(O const& optimizer,
                 UpdateContext const& context,
                 UpdateArrays const& arrays,
                 RandomKey const& rounding,
                 std::size_t first_element = 0) {
  auto const size = arrays.weights.size;
  auto const state_count = arrays.states.size();
  require(state_count == optimizer.state_arrays() && state_count <= max_update_states,
          Errc::invalid_argument,
          "an update needs as many states as its optimizer, and at most 8");
  require(arrays.gradient.size == size && detail::is_convertible(arrays.gradient.dtype),
          Errc::invalid_argument,
          "a gradient must be f32, bf16 or f16 and have as many elements as the weights");
  for (auto const& state : arrays.states) {
    require(state.size == size && (state.dtype == DType::f32 || state.dtype == DType::bf16),
            Errc::invalid_argument,
            "a state must be f32 or bf16 and have as many elements as the weights");
  }
  detail::check_weights_and_master(arrays.weights, arrays.master);

  auto const update = detail::prepared(optimizer, context);
  detail::MasterStore const store(arrays.weights, arrays.master);
  detail::UpdateTiles tiles;  // not initialized: unconverted arrays cost nothing
  std::array<HostSpan<float>, max_update_states> states;
  for (std::size_t begin = 0; begin < size;) {
    // Random bits get a new key every 2^32 elements.
    auto const index = std::uint64_t{first_element} + begin;
    auto const there = (std::uint64_t{1} << 32U) - static_cast<std::uint32_t>(index);
    auto const end = begin + static_cast<std::size_t>(std::min<std::uint64_t>(size - begin, there));
    std::array<detail::RoundingStream, 1 + max_update_states> streams;
    streams[0] = {rounding, 0, index};
    for (std::size_t k = 0; k < state_count; ++k) {
      streams[k + 1] = {rounding, k + 1, index};
    }
    for (; begin < end; begin += std::min(update_tile_size, end - begin)) {
      auto const count = std::min(update_tile_size, end - begin);
      auto const first = static_cast<std::uint32_t>(first_element + begin);
      using Tiles = detail::UpdateTiles;
      auto const weights = Tiles::open(arrays.weights, begin, count, tiles.weights);
      auto const gradient = Tiles::open(arrays.gradient, begin, count, tiles.gradient);
      for (std::size_t k = 0; k < state_count; ++k) {
        states[k] = Tiles::open(arrays.states[k], begin, count, tiles.states[k]);
      }
      update(weights, gradient, std::span<HostSpan<float> const>(states).first(state_count));
      for (std::size_t k = 0; k < state_count; ++k) {
        if (arrays.states[k].dtype == DType::bf16) {
          auto const place = arrays.states[k].part(begin, begin + count);
          detail::narrow_stochastically(states[k], place.data, false, streams[k + 1], first);
        }
      }
      if (arrays.weights.dtype == DType::bf16) {
        auto const place = store.master.part(begin, begin + count);
        detail::narrow_stochastically(weights, place.data, store.streams, streams[0], first);
      } else if (store.master.present()) {
        store.nearest(weights, begin);
      }
    }
  }
  if (store.streams) {
    detail::stream_fence();
  }
}

/// \brief The replacement for \ref update_pass in a skipped step: weights and states stay, and the
/// master copy becomes the weights: f32 rounded to nearest, bf16 unchanged. Gradient and states are
/// ignored.
/// \throws Error (invalid_argument) when weights and master copy do not match \ref UpdateArrays.
void copy_pass(UpdateArrays const& arrays);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/update_pass.ipp>
#endif
