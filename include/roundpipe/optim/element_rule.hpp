// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Loops that apply an optimizer's rule for single elements: to arrays of floats, or to
/// arrays of bf16 with stochastic rounding.
///
/// A rule is a struct of constants with `static constexpr std::size_t states` and
///
///     template <class S>
///     void step(S::Floats& weights, S::Floats const& gradients, S::Floats* states) const;
///
/// which updates vectors of \ref detail::Simd. Rules are `gnu::always_inline`, like all kernels of
/// `simd.hpp`.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/simd.hpp>
#include <roundpipe/core/simd_pairs.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/optim/stochastic_rounding.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace roundpipe::detail {

/// Updates floats.
template <class Rule>
struct FloatUpdate {
  Rule rule;
  float const* gradients;
  float* weights;
  std::array<float*, Rule::states> states;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i, std::size_t count) const noexcept {
    update<S>(i, count, std::make_index_sequence<Rule::states>());
  }

 private:
  template <class S, std::size_t... K>
  [[gnu::always_inline]] void update(std::size_t i,
                                     std::size_t count,
                                     std::index_sequence<K...>) const noexcept {
    typename S::Floats g;
    typename S::Floats w;
    typename S::Floats s[Rule::states + 1];
    (S::prefetch(states[K], i), ...);
    S::prefetch(weights, i);
    S::load(g, gradients + i, count);
    (S::load(s[K], states[K] + i, count), ...);
    S::load(w, weights + i, count);
    rule.template step<S>(w, g, s);
    (S::store(states[K] + i, s[K], count), ...);
    S::store(weights + i, w, count);
  }
};

/// Updates bf16 weights and states from gradients of \p Gradient: float, or std::uint16_t for bf16.
/// (A branch in the loop took 7 % of the time.) Arrays are numbered as in
/// `stochastic_rounding.hpp`.
template <class Rule, class Gradient>
struct BFloat16Update {
  static constexpr std::size_t arrays = 1 + Rule::states;

  Rule rule;
  Gradient const* gradients;
  std::array<std::uint16_t const*, arrays> from;
  std::array<std::uint16_t*, arrays> to;
  bool streams;  ///< The weights past the caches: aligned to 64 bytes, and \p first is even.
  RoundingStream stream;
  std::uint64_t first;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i,
                                 std::size_t skip,
                                 std::size_t count) const noexcept {
    update<S>(i, skip, count, std::make_index_sequence<arrays>());
  }

 private:
  template <class S,
            std::size_t... K>  // not loops over arrays: compilers keep their vectors in memory
  [[gnu::always_inline]] void update(std::size_t i,
                                     std::size_t skip,
                                     std::size_t count,
                                     std::index_sequence<K...>) const noexcept {
    using Pairs = SimdPairs<S>;
    using Words = typename S::Words;
    typename S::Floats even[arrays];
    typename S::Floats odd[arrays];
    typename S::Floats even_gradients;
    typename S::Floats odd_gradients;
    Words words[arrays];
    Words even_bits[arrays];
    Words odd_bits[arrays];
    Words hashes;
    Words extremes{};
    (S::prefetch(from[K], i), ...);
    (Pairs::load(words[K], from[K] + i, skip, count), ...);
    (Pairs::widen(even[K], odd[K], words[K]), ...);
    S::prefetch(gradients, i);
    if constexpr (std::is_same_v<Gradient, float>) {
      Pairs::load(even_gradients, odd_gradients, gradients + i, skip, count);
      RoundPairs<S>::add_nans(extremes, even_gradients);
      RoundPairs<S>::add_nans(extremes, odd_gradients);
    } else {
      Words g;
      Pairs::load(g, gradients + i, skip, count);
      Pairs::widen(even_gradients, odd_gradients, g);
    }
    rule.template step<S>(even[0], even_gradients, even + 1);
    rule.template step<S>(odd[0], odd_gradients, odd + 1);

    stream.template hash<S>(hashes, static_cast<std::uint32_t>((first + i) >> 1U));
    (RoundingStream::draw<S>(even_bits[K], odd_bits[K], hashes, rounding_multiplier(K)), ...);
    (RoundPairs<S>::moderate(words[K], even[K], odd[K], even_bits[K], odd_bits[K]), ...);
    (RoundPairs<S>::add_extremes(extremes, words[K]), ...);
    if (Pairs::any_sign(extremes)) [[unlikely]] {
      (RoundPairs<S>::all(words[K], even[K], odd[K], even_bits[K], odd_bits[K]), ...);
    }
    if (streams && count == Pairs::elements) {
      S::stream(reinterpret_cast<std::uint32_t*>(to[0] + i), words[0]);
      ((K > 0 ? Pairs::store(to[K] + i, words[K], skip, count) : void()), ...);
    } else {
      (Pairs::store(to[K] + i, words[K], skip, count), ...);
    }
  }
};

/// Updates the elements of float arrays.
/// \throws Error (invalid_argument) when sizes or the number of states differ.
template <class Rule>
void update_floats(Rule const& rule,
                   HostSpan<float> weights,
                   HostSpan<float const> gradients,
                   std::span<HostSpan<float> const> states) {
  require(states.size() == Rule::states,
          Errc::invalid_argument,
          "an update needs as many states as its optimizer");
  FloatUpdate<Rule> update{rule, gradients.data(), weights.data(), {}};
  auto same = gradients.size() == weights.size();
  for (std::size_t k = 0; k < states.size(); ++k) {
    same = same && states[k].size() == weights.size();
    update.states[k] = states[k].data();
  }
  require(same,
          Errc::invalid_argument,
          "an update's weights, gradients and states must have the same number of elements");
  for_each_element(weights.size(), update);
}

}  // namespace roundpipe::detail
