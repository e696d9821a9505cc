// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief One pass over a part of a parameter that reads the gradient in its type, updates weights
/// and states, and writes the master copy: every byte of memory is touched once.
///
/// An update is bound by memory. With bf16 gradients and master copy and AdamW's three fp32 arrays
/// a parameter costs 28 bytes of traffic: 2 + 3 * 4 read, 3 * 4 + 2 written. The pass goes tile by
/// tile; what is converted on the way stays in tiles on the stack, that is in the L1 cache.

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

/// Elements that \ref update_pass handles at a time.
inline constexpr std::size_t update_tile_size = 1024;

/// The most state arrays that an optimizer may have in \ref update_pass.
inline constexpr std::size_t max_update_states = 8;

/// Passes over at least so many elements write the master copy past the caches.
inline constexpr std::size_t streaming_pass_size = std::size_t{64} << 10U;

/// \brief What one update reads and writes: equally many elements of each array that is present.
///
/// Arrays do not overlap, but for bf16 or f32 weights that are their own master copy.
struct UpdateArrays {
  /// Read; f32 or bf16. f32 is updated in place. bf16 is not written here: the new weights go to
  /// \c master alone, which may be the same memory.
  HostArray weights;
  HostArray gradient;                 ///< Read; f32, bf16 or f16.
  std::span<HostArray const> states;  ///< Read and written; f32 or bf16.
  /// Written, never read: the new weights. With f32 weights: f32, bf16, f16 or absent. With bf16
  /// weights: bf16.
  HostArray master;
};

namespace detail {

/// How a master copy is written.
struct MasterStore {
  HostArray master;
  bool streams;  ///< Past the caches.

  MasterStore(HostArray const& weights, HostArray const& copy) noexcept
      : master(copy),
        streams(copy.present() && copy.data != weights.data && copy.size >= streaming_pass_size &&
                reinterpret_cast<std::uintptr_t>(copy.data) % 64 == 0) {}

  /// Elements from \p begin on become \p weights, rounded to nearest.
  void nearest(HostSpan<float const> weights, std::size_t begin) const;
};

/// fp32 to bf16 elements from \p to on, at random.
void narrow_stochastically(HostSpan<float const> values,
                           std::byte* to,
                           bool streams,
                           RoundingStream const& stream,
                           std::uint32_t first);

/// \throws Error (invalid_argument) unless \p weights and \p master go together.
void check_weights_and_master(HostArray const& weights, HostArray const& master);

/// \p optimizer's update with \p context.
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

  /// The elements of \p array from \p begin on as floats: its own, or converted to \p tile.
  static HostSpan<float> open(HostArray const& array,
                              std::size_t begin,
                              std::size_t count,
                              Tile& tile);

  alignas(64) Tile weights;
  alignas(64) Tile gradient;
  alignas(64) std::array<Tile, max_update_states> states;
};

}  // namespace detail

/// \brief Updates a part of a parameter: one call of \p optimizer's `update` a tile, on floats.
///
/// An optimizer may opt in to `prepared(context)`, which returns a function of weights, gradient
/// and states that does what `update(context, ...)` does, bit by bit. It is then called instead.
///
/// f32 weights are rounded to nearest, ties to even, for the master copy. What is bf16 and state at
/// once (bf16 weights on their way to the master copy, bf16 states) is rounded at random, as
/// `stochastic_rounding.hpp` says, with \p rounding, the array's number (weights 0, states 1 and
/// on) and the element's index in the whole parameter; \p first_element is the index of the part's
/// first. So the bits do not depend on how a parameter is cut, nor on threads. Different parts may
/// be updated at once. Each step of each parameter wants a \p rounding of its own.
///
/// Blocking. Large parts whose master copy begins at a multiple of 64 bytes are written past the
/// caches; that is over, for every other thread that learns of it, when the call returns.
///
/// \throws Error (invalid_argument) when sizes, types or the number of states are not as \ref
/// UpdateArrays says, or by \p optimizer.
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
          "an update has as many states as its optimizer, and at most 8");
  require(arrays.gradient.size == size && detail::is_convertible(arrays.gradient.dtype),
          Errc::invalid_argument,
          "a gradient is f32, bf16 or f16 and has as many elements as the weights");
  for (auto const& state : arrays.states) {
    require(state.size == size && (state.dtype == DType::f32 || state.dtype == DType::bf16),
            Errc::invalid_argument,
            "a state is f32 or bf16 and has as many elements as the weights");
  }
  detail::check_weights_and_master(arrays.weights, arrays.master);

  auto const update = detail::prepared(optimizer, context);
  detail::MasterStore const store(arrays.weights, arrays.master);
  detail::UpdateTiles tiles;  // not initialized: what is not converted costs nothing
  std::array<HostSpan<float>, max_update_states> states;
  for (std::size_t begin = 0; begin < size;) {
    // Random bits are keyed anew every 2^32 elements.
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

/// \brief What \ref update_pass does in a step that is skipped: weights and states stay, and the
/// master copy becomes the weights: f32 rounded to nearest, bf16 as they are. Gradient and states
/// are not looked at.
/// \throws Error (invalid_argument) when weights and master copy are not as \ref UpdateArrays says.
void copy_pass(UpdateArrays const& arrays);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/update_pass.ipp>
#endif
