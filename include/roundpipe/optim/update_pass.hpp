// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief One pass over a part of a parameter that reads the gradient in its type, updates weights
/// and states, and writes the master copy, touching every byte of memory once.
/// Memory bandwidth limits an update. With bf16 gradients and master copy and AdamW's three fp32
/// arrays, a parameter costs 28 bytes of traffic: 2 + 3 * 4 read, 3 * 4 + 2 written. The pass goes
/// tile by tile; converted values stay in tiles on the stack, that is, in the L1 cache. With
/// weights and states in bf16 a parameter costs 14 bytes, and detours through tiles would take
/// longer than memory: converted values then stay in registers, if the optimizer tells its rule for
/// single elements.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/optim/element_rule.hpp>
#include <roundpipe/optim/stochastic_rounding.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace roundpipe {

/// The number of elements that \ref update_pass handles at a time.
inline constexpr std::size_t update_tile_size = 1024;

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

/// \throws Error (invalid_argument) unless \p weights and \p master match.
void check_weights_and_master(HostArray const& weights, HostArray const& master);

/// \throws Error (invalid_argument) unless \p arrays are as \ref UpdateArrays says, with
/// \p state_count states.
void check_arrays(UpdateArrays const& arrays, std::size_t state_count);

/// The fp32 tiles of a pass.
class UpdateTiles {
 public:
  using Tile = std::array<float, update_tile_size>;

  /// The elements of \p array from \p begin on as floats: in place, or converted to \p tile, which
  /// has as many.
  static HostSpan<float> open(HostArray const& array,
                              std::size_t begin,
                              std::size_t count,
                              HostSpan<float> tile);

  alignas(64) Tile weights;
  alignas(64) Tile gradient;
  alignas(64) std::array<Tile, max_update_states> states;
};

/// Rounds the floats of elements from index \p first on to where they are kept: states in place,
/// the weights as the master copy.
void store_floats(HostSpan<float const> weights,
                  std::span<HostSpan<float> const> states,
                  UpdateArrays const& arrays,
                  MasterStore const& store,
                  RoundingStream const& stream,
                  std::size_t begin,
                  std::uint64_t first);

/// A pass whose `update(begin, weights, gradient, states)` updates floats, tile by tile; \c begin
/// is the index of the tile's first element in the part.
template <class Update>
void update_by_tiles(Update const& update,
                     UpdateArrays const& arrays,
                     MasterStore const& store,
                     RandomKey const& rounding,
                     std::uint64_t first_element) {
  auto const state_count = arrays.states.size();
  UpdateTiles tiles;  // not initialized: unconverted arrays cost nothing
  std::array<HostSpan<float>, max_update_states> states;
  auto const part = [&](RoundingStream const& stream, std::size_t begin, std::size_t end) {
    for (; begin < end; begin += std::min(update_tile_size, end - begin)) {
      auto const count = std::min(update_tile_size, end - begin);
      auto const first = first_element + begin;
      auto const weights = UpdateTiles::open(arrays.weights, begin, count, tiles.weights);
      auto const gradient = UpdateTiles::open(arrays.gradient, begin, count, tiles.gradient);
      for (std::size_t k = 0; k < state_count; ++k) {
        states[k] = UpdateTiles::open(arrays.states[k], begin, count, tiles.states[k]);
      }
      auto const tile_states = std::span<HostSpan<float> const>(states).first(state_count);
      update(begin, weights, gradient, tile_states);
      store_floats(weights, tile_states, arrays, store, stream, begin, first);
    }
  };
  for_each_stream(rounding, first_element, arrays.weights.size, part);
}

/// Whether \ref update_bfloat16 can update \p arrays.
[[nodiscard]] bool are_bfloat16(UpdateArrays const& arrays) noexcept;

/// A pass over arrays of bf16 that keeps everything in registers. \p Gradient is the type of
/// gradients: float, or std::uint16_t for bf16.
template <class Gradient, class Rule>
void update_bfloat16(Rule const& rule,
                     UpdateArrays const& arrays,
                     MasterStore const& store,
                     RandomKey const& rounding,
                     std::uint64_t first_element) {
  auto const part = [&](RoundingStream const& stream, std::size_t begin, std::size_t end) {
    auto const halves = [&](HostArray const& array) {
      return reinterpret_cast<std::uint16_t*>(array.part(begin, end).data);
    };
    auto const first = first_element + begin;
    auto const* const gradients = reinterpret_cast<Gradient const*>(arrays.gradient.data) + begin;
    BFloat16Update<Rule, Gradient> update{rule, gradients, {}, {}, {}, stream, first};
    update.from[0] = halves(arrays.weights);
    update.to[0] = halves(store.master);
    update.streams = store.streams && may_stream(update.to[0], first);
    for (std::size_t k = 0; k < arrays.states.size(); ++k) {
      update.to[k + 1] = halves(arrays.states[k]);
      update.from[k + 1] = update.to[k + 1];
    }
    for_each_pair(end - begin, first % 2 != 0, update);
  };
  for_each_stream(rounding, first_element, arrays.weights.size, part);
}

}  // namespace detail

/// \brief Updates a part of a parameter: one call of \p optimizer's `update` for each tile, on
/// floats.
/// An optimizer may opt in to `with_rule(context, f)`, which calls `f` once with an element rule
/// (`element_rule.hpp`) that gives the same results as `update(context, ...)`, bit by bit. The pass
/// then applies that rule instead.
/// f32 weights are rounded to nearest, ties to even, for the master copy. bf16 values that are also
/// state (bf16 weights on their way to the master copy, bf16 states) are rounded at random, as
/// `stochastic_rounding.hpp` says, with \p rounding, the number of the array (weights 0, states 1
/// and up) and the index of the element in the whole parameter. The bits therefore do not depend on
/// cuts or threads. Several threads may update different parts at once. Each step of each parameter
/// needs its own \p rounding. Blocking. Large parts whose master copy begins at a multiple of 64
/// bytes are written past the caches; these writes are visible to every thread that learns of the
/// call's return.
/// \throws Error (invalid_argument) when sizes, types or the number of states do not match \ref
/// UpdateArrays; also the errors of \p optimizer.
template <Optimizer O>
void update_pass(O const& optimizer,
                 UpdateContext const& context,
                 UpdateArrays const& arrays,
                 RandomKey const& rounding) {
  detail::check_arrays(arrays, optimizer.state_arrays());
  auto const first_element = context.first_element;
  detail::MasterStore const store(arrays.weights, arrays.master);
  auto const by_tiles = [&](auto const& update) {
    detail::update_by_tiles(update, arrays, store, rounding, first_element);
  };
  if constexpr (detail::HasElementRule<O>) {
    optimizer.with_rule(context, [&](auto const& rule) {
      if (!detail::are_bfloat16(arrays)) {
        by_tiles(
            [&](std::size_t, auto const&... floats) { detail::update_floats(rule, floats...); });
      } else if (arrays.gradient.dtype == DType::bf16) {
        detail::update_bfloat16<std::uint16_t>(rule, arrays, store, rounding, first_element);
      } else {
        detail::update_bfloat16<float>(rule, arrays, store, rounding, first_element);
      }
    });
  } else {
    by_tiles([&](std::size_t begin, auto const&... floats) {
      auto tile = context;
      tile.first_element += begin;
      optimizer.update(tile, floats...);
    });
  }
  if (store.streams) {
    detail::stream_fence();
  }
}

/// How many arrays of \p arrays are not f32: \ref update_whole widens each of them as a whole.
[[nodiscard]] std::size_t widened_arrays(UpdateArrays const& arrays) noexcept;

/// \brief Updates a whole parameter with one call of \p optimizer's `update`, on floats; rounds as
/// \ref update_pass does.
/// \param scratch As many floats as the weights for each of the \ref widened_arrays.
/// \throws Error (invalid_argument) when \p scratch is too small; and as \ref update_pass does.
template <Optimizer O>
void update_whole(O const& optimizer,
                  UpdateContext const& context,
                  UpdateArrays const& arrays,
                  RandomKey const& rounding,
                  HostSpan<float> scratch) {
  detail::check_arrays(arrays, optimizer.state_arrays());
  auto const size = arrays.weights.size;
  require(scratch.size() >= widened_arrays(arrays) * size,
          Errc::invalid_argument,
          "a whole update needs scratch for each array that is not f32");
  auto const open = [&](HostArray const& array) {
    auto const room = scratch.first(array.dtype == DType::f32 ? 0 : size);
    scratch = scratch.subspan(room.size());
    return detail::UpdateTiles::open(array, 0, size, room);
  };
  auto const weights = open(arrays.weights);
  auto const gradient = open(arrays.gradient);
  std::vector<HostSpan<float>> states;
  std::transform(arrays.states.begin(), arrays.states.end(), std::back_inserter(states), open);
  optimizer.update(context, weights, gradient, states);

  detail::MasterStore const store(arrays.weights, arrays.master);
  auto const part = [&](detail::RoundingStream const& stream, std::size_t begin, std::size_t end) {
    auto parts = states;
    for (auto& state : parts) {
      state = state.subspan(begin, end - begin);
    }
    detail::store_floats(
        weights.subspan(begin, end - begin), parts, arrays, store, stream, begin, begin);
  };
  detail::for_each_stream(rounding, 0, size, part);
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
