// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/core/simd_pairs.hpp>

#include <roundpipe/core/simd_level.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simd_pairs_test {

namespace {

using namespace roundpipe;

/// Adds the floats of \p added to the bf16 elements, and cuts off what bf16 cannot hold. The even
/// and the odd elements of a pair take different ways.
struct AddCutOff {
  std::uint16_t* elements;
  float const* added;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i, std::size_t skip, std::size_t count) const {
    using Pairs = detail::SimdPairs<S>;
    typename S::Words words;
    typename S::Floats even, odd, more_even, more_odd;
    Pairs::load(words, elements + i, skip, count);
    Pairs::widen(even, odd, words);
    Pairs::load(more_even, more_odd, added + i, skip, count);
    even += more_even;
    odd += more_odd;
    auto const low = reinterpret_cast<typename S::Words>(even) >> 16;
    auto const high = reinterpret_cast<typename S::Words>(odd) & 0xffff0000U;
    Pairs::store(elements + i, low | high, skip, count);
  }
};

struct FindSigns {
  std::uint16_t const* elements;
  bool* found;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i, std::size_t skip, std::size_t count) const {
    typename S::Words words;
    detail::SimdPairs<S>::load(words, elements + i, skip, count);
    *found = *found || detail::SimdPairs<S>::any_sign(words);
  }
};

float widened(std::uint16_t element) {
  return std::bit_cast<float>(std::uint32_t{element} << 16);
}

}  // namespace

TEST_CASE("every element is reached once, at every level, however the array begins and ends") {
  for (auto const level : simd_levels()) {
    CAPTURE(static_cast<int>(level));
    SimdLevelOverride const override_level(level);
    for (std::size_t size = 0; size < 100; ++size) {
      for (bool const begins_odd : {false, true}) {
        CAPTURE(size);
        CAPTURE(begins_odd);
        std::vector<std::uint16_t> elements(size + 1);  // the last one must stay
        std::vector<float> added(size);
        for (std::size_t i = 0; i < size; ++i) {
          elements[i] = static_cast<std::uint16_t>(0x3f80 + i);
          added[i] = static_cast<float>(i);
        }
        elements[size] = 0x1234;
        auto expected = elements;
        for (std::size_t i = 0; i < size; ++i) {
          auto const sum = widened(expected[i]) + added[i];
          expected[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(sum) >> 16);
        }
        detail::for_each_pair(size, begins_odd, AddCutOff{elements.data(), added.data()});
        CHECK(elements == expected);
      }
    }
  }
}

TEST_CASE("a sign is found in either element of any pair, and nothing else is") {
  for (auto const level : simd_levels()) {
    CAPTURE(static_cast<int>(level));
    SimdLevelOverride const override_level(level);
    constexpr std::size_t size = 64;
    auto const any_sign = [&](std::vector<std::uint16_t> const& elements) {
      bool found = false;
      detail::for_each_pair(size, false, FindSigns{elements.data(), &found});
      return found;
    };
    std::vector<std::uint16_t> elements(size, 0x7fff);
    CHECK_FALSE(any_sign(elements));
    for (auto& element : elements) {
      element = 0x8000;
      CHECK(any_sign(elements));
      element = 0x7fff;
    }
  }
}

}  // namespace simd_pairs_test
