// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A continuation of some text, byte by byte, through a trainer's `evaluate`.

#include <roundpipe/core/random.hpp>
#include <roundpipe/core/span.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "windows.hpp"

namespace train_text {

/// The index that the number \p u in [0, 1) picks from \p logits: index i with probability
/// softmax(logits / temperature)[i]; with temperature 0 the (first) largest. Precondition: \p
/// logits is not empty.
[[nodiscard]] inline std::size_t pick(roundpipe::HostSpan<float const> logits,
                                      double temperature,
                                      double u) {
  auto const largest = std::max_element(logits.begin(), logits.end());
  if (!(temperature > 0)) {
    return static_cast<std::size_t>(largest - logits.begin());
  }
  std::vector<double> weights;
  double total = 0;
  for (auto const logit : logits) {
    weights.push_back(std::exp((static_cast<double>(logit) - *largest) / temperature));
    total += weights.back();
  }
  double rest = u * total;
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

/// \p count bytes that \p trainer generates after \p prompt, seeing the last \p context bytes each
/// time. Equal weights and seeds give equal bytes. With a prompt of less than \p context bytes the
/// windows have many lengths, and each length may cost a pipeline a warm-up.
template <class Trainer>
[[nodiscard]] std::string continue_text(Trainer& trainer,
                                        std::string_view prompt,
                                        std::size_t count,
                                        std::size_t context,
                                        double temperature,
                                        std::uint64_t seed) {
  constexpr std::uint32_t sample = 0xFFFFFFFDU;  // no layer has this number
  roundpipe::RandomKey const key{seed, 0, sample, 0, 0};
  std::string text(prompt);
  for (std::size_t i = 0; i < count; ++i) {
    auto const seen = std::min(context, text.size());
    // A window needs a label for its last position. Any will do: only the loss depends on it.
    auto const window = text.substr(text.size() - seen) + '\0';
    WindowBatch const batch(window, {0}, 1, seen);
    auto const evaluation = trainer.evaluate(batch.view());
    auto const last_logits = evaluation.template result<float>(0, 0);
    auto const u = static_cast<double>(roundpipe::uniform(roundpipe::random_word(key, i)));
    text.push_back(static_cast<char>(pick(last_logits, temperature, u)));
  }
  return text.substr(prompt.size());
}

/// \p text for a terminal: line ends and tabs as they are, other bytes outside printable ASCII as
/// '?'.
[[nodiscard]] inline std::string printable(std::string_view text) {
  std::string result(text);
  for (auto& c : result) {
    if ((c < ' ' || c > '~') && c != '\n' && c != '\t') {
      c = '?';
    }
  }
  return result;
}

}  // namespace train_text
