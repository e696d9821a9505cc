// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Picks the next token from the logits of a model.

#include <roundpipe/core/random.hpp>
#include <roundpipe/core/span.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace examples {

/// How tokens are drawn.
struct Sampling {
  double temperature = 0;  ///< 0: always the likeliest.
  std::size_t top_k = 0;   ///< Only so many of the likeliest; 0: all.
  /// Only the fewest of the likeliest that together have this probability (Holtzman et al. 2020).
  double top_p = 1;
};

/// The random number in [0, 1) with which token number \p index of a text is drawn.
[[nodiscard]] inline double draw(std::uint64_t seed, std::uint64_t index) {
  constexpr std::uint32_t sample = 0xFFFFFFFDU;  // no layer has this number
  roundpipe::RandomKey const key{seed, 0, sample, 0, 0};
  return static_cast<double>(roundpipe::uniform(roundpipe::random_word(key, index)));
}

/// The index that the number \p u in [0, 1) picks from \p logits: index i with probability
/// softmax(logits / temperature)[i], over those that \p sampling leaves; of equal logits, the first
/// are the likeliest. Precondition: \p logits is not empty.
[[nodiscard]] inline std::size_t pick(roundpipe::HostSpan<float const> logits,
                                      Sampling const& sampling,
                                      double u) {
  auto const largest = std::max_element(logits.begin(), logits.end());
  if (!(sampling.temperature > 0)) {
    return static_cast<std::size_t>(largest - logits.begin());
  }
  std::vector<double> weights;
  for (auto const logit : logits) {
    weights.push_back(std::exp((static_cast<double>(logit) - *largest) / sampling.temperature));
  }
  if (sampling.top_k > 0 || sampling.top_p < 1) {
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(
        order.begin(), order.end(), [&](auto a, auto b) { return weights[a] > weights[b]; });
    auto left = sampling.top_k > 0 ? std::min(sampling.top_k, order.size()) : order.size();
    double all = 0;  // of those that top_k leaves
    for (std::size_t i = 0; i < left; ++i) {
      all += weights[order[i]];
    }
    double kept = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i >= left || (i > 0 && kept >= sampling.top_p * all)) {
        weights[order[i]] = 0;
      }
      kept += weights[order[i]];
    }
  }
  double rest = u * std::accumulate(weights.begin(), weights.end(), 0.0);
  std::size_t last = 0;  // rounding may leave a remainder
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) {
      last = i;
      if (rest < weights[i]) {
        break;
      }
      rest -= weights[i];
    }
  }
  return last;
}

}  // namespace examples
