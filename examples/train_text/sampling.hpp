// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A continuation of some text, byte by byte, through a trainer's `evaluate`.

#include <common/pick.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "windows.hpp"

namespace train_text {

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
  std::string text(prompt);
  for (std::size_t i = 0; i < count; ++i) {
    auto const seen = std::min(context, text.size());
    // A window needs a label for its last position. Any will do: only the loss depends on it.
    auto const window = text.substr(text.size() - seen) + '\0';
    WindowBatch const batch(window, {0}, 1, seen);
    auto const evaluation = trainer.evaluate(batch.view());
    auto const last_logits = evaluation.template result<float>(0, 0);
    auto const next =
        examples::pick(last_logits, {.temperature = temperature}, examples::draw(seed, i));
    text.push_back(static_cast<char>(next));
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
