// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Drives an optimizer over random gradients, in one piece or in many.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/core/simd_level.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace roundpipe::test {

/// A parameter, its optimizer's states, and their positions in memory.
class Parameter {
 public:
  /// Puts \p shift elements before each array, to test all alignments.
  Parameter(std::size_t size, std::size_t states, std::uint64_t seed, std::size_t shift = 0)
      : size_(size), shift_(shift), arrays_(states + 1, std::vector<float>(size + shift)) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    std::generate_n(arrays_[0].begin() + static_cast<std::ptrdiff_t>(shift), size, [&] {
      return normal(random);
    });
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  /// The weights (0) or a state (1 and up).
  [[nodiscard]] HostSpan<float> array(std::size_t k) {
    return HostSpan<float>(arrays_[k]).subspan(shift_);
  }
  [[nodiscard]] HostSpan<float> weights() { return array(0); }

  /// One step with these gradients, in parts of at most \p part elements.
  template <Optimizer O>
  void update(O const& optimizer,
              UpdateContext const& context,
              HostSpan<float const> gradients,
              std::size_t part) {
    for (std::size_t first = 0; first < size_; first += part) {
      auto const count = std::min(part, size_ - first);
      std::vector<HostSpan<float>> states;
      for (std::size_t k = 1; k < arrays_.size(); ++k) {
        states.push_back(array(k).subspan(first, count));
      }
      optimizer.update(
          context, weights().subspan(first, count), gradients.subspan(first, count), states);
    }
  }

  /// Whether all bits are equal.
  [[nodiscard]] bool same_bits(Parameter& other) {
    for (std::size_t k = 0; k < arrays_.size(); ++k) {
      if (std::memcmp(array(k).data(), other.array(k).data(), array(k).size_bytes()) != 0) {
        return false;
      }
    }
    return arrays_.size() == other.arrays_.size();
  }

 private:
  std::size_t size_;
  std::size_t shift_;
  std::vector<std::vector<float>> arrays_;
};

/// Gradients of step \p step, of many magnitudes.
[[nodiscard]] inline std::vector<float> gradients(std::size_t size, std::uint64_t step) {
  std::mt19937_64 random(1000 + step);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-12, 2);
  std::vector<float> result(size);
  std::generate(
      result.begin(), result.end(), [&] { return normal(random) * std::exp2(exponent(random)); });
  return result;
}

/// Whether five steps leave the same bits, however the parameter is cut, wherever it lies, and
/// whichever vector instructions are used.
template <Optimizer O>
[[nodiscard]] bool parts_do_not_matter(O const& optimizer) {
  constexpr std::size_t size = 1000;
  auto const run = [&](std::size_t part, std::size_t shift) {
    Parameter parameter(size, optimizer.state_arrays(), 7, shift);
    for (std::uint64_t step = 1; step <= 5; ++step) {
      UpdateContext const context{.step = step, .gradient_factor = 0.37F};
      parameter.update(optimizer, context, gradients(size, step), part);
    }
    return parameter;
  };
  auto whole = run(size, 0);
  for (auto const level : simd_levels()) {
    SimdLevelOverride const use(level);
    for (std::size_t const part : {1, 2, 3, 5, 8, 13, 16, 31, 63, 64, 65, 127, 500, 999}) {
      for (std::size_t const shift : {0, 1, 3}) {
        auto parts = run(part, shift);
        if (!parts.same_bits(whole)) {
          return false;
        }
      }
    }
  }
  return true;
}

}  // namespace roundpipe::test
