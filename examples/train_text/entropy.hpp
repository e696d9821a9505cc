// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The loss of models that count bytes and pairs of bytes: yardsticks for a byte-level
/// model.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace train_text {

/// Counts of bytes and of pairs of neighbours in runs of text.
class ByteCounts {
 public:
  /// Counts the bytes and the pairs of \p run; no pair reaches from one run into the next.
  void add(std::string_view run) {
    for (std::size_t i = 0; i < run.size(); ++i) {
      auto const byte = static_cast<unsigned char>(run[i]);
      ++singles_[byte];
      if (i > 0) {
        ++pairs_[static_cast<unsigned char>(run[i - 1]) * std::size_t{256} + byte];
      }
    }
  }

  /// H(X) = - sum p(x) ln p(x), p from the counts, in nats per byte (Shannon 1948, section 6).
  /// 0 for no text.
  [[nodiscard]] double unigram_entropy() const { return entropy(singles_.data()).nats; }

  /// H(next | previous) = - sum p(a, b) ln p(b | a), from the counts of pairs, in nats per byte. On
  /// the counted text, this is the loss of the best model that sees one byte. 0 for no pair.
  [[nodiscard]] double bigram_entropy() const {
    double nats = 0;
    std::uint64_t total = 0;
    for (std::size_t a = 0; a < 256; ++a) {
      auto const row = entropy(&pairs_[a * 256]);
      nats += row.nats * static_cast<double>(row.count);
      total += row.count;
    }
    return total == 0 ? 0 : nats / static_cast<double>(total);
  }

 private:
  struct Entropy {
    double nats = 0;
    std::uint64_t count = 0;
  };

  /// Of the 256 counts that begin at \p counts.
  static Entropy entropy(std::uint64_t const* counts) {
    Entropy result;
    for (std::size_t i = 0; i < 256; ++i) {
      result.count += counts[i];
    }
    auto const total = static_cast<double>(result.count);
    for (std::size_t i = 0; i < 256; ++i) {
      if (counts[i] > 0) {
        auto const p = static_cast<double>(counts[i]) / total;
        result.nats -= p * std::log(p);
      }
    }
    return result;
  }

  std::array<std::uint64_t, 256> singles_{};
  std::vector<std::uint64_t> pairs_ = std::vector<std::uint64_t>(std::size_t{256} * 256);
};

}  // namespace train_text
