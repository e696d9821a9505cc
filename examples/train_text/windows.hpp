// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Sequences cut from the text, as the batches of a call.

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/model/batch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "corpus.hpp"

namespace train_text {

/// Draws the beginnings of training windows. Each place from which a whole window fits into one
/// training range is equally likely. The windows of step s depend on the seed and on s alone.
class WindowDraw {
 public:
  /// Precondition: every range holds at least one window of \p window bytes.
  WindowDraw(std::vector<TextRange> const& ranges, std::size_t window, std::uint64_t seed)
      : seed_(seed) {
    for (auto const& range : ranges) {
      ranges_.push_back({range.first, places_});
      places_ += range.size() - window + 1;
    }
  }

  /// The beginnings of \p count windows for the step after \p step finished ones.
  [[nodiscard]] std::vector<std::size_t> starts(std::uint64_t step, std::size_t count) const {
    constexpr std::uint32_t text = 0xFFFFFFFEU;  // no layer has this number
    roundpipe::RandomKey const key{seed_, static_cast<std::uint32_t>(step), text, 0, 0};
    std::vector<std::size_t> result(count);
    for (std::size_t i = 0; i < count; ++i) {
      auto const words = roundpipe::random_block(key, i);
      auto const place = ((std::uint64_t{words[1]} << 32) | words[0]) % places_;
      auto const next = std::upper_bound(
          ranges_.begin(), ranges_.end(), place, [](auto p, auto const& r) { return p < r.place; });
      auto const& range = *(next - 1);
      result[i] = range.first + (place - range.place);
    }
    return result;
  }

 private:
  struct Range {
    std::size_t first = 0;
    std::size_t place = 0;  // the index of the window that begins at `first`
  };
  std::uint64_t seed_;
  std::vector<Range> ranges_;
  std::size_t places_ = 0;
};

/// At most \p limit windows of \p window bytes, side by side in \p ranges or, if more would fit,
/// spread evenly over them.
[[nodiscard]] inline std::vector<std::size_t> validation_starts(
    std::vector<TextRange> const& ranges, std::size_t window, std::size_t limit) {
  std::vector<std::size_t> all;
  for (auto const& range : ranges) {
    for (auto start = range.first; start + window <= range.end; start += window) {
      all.push_back(start);
    }
  }
  auto const count = std::min(limit, all.size());
  std::vector<std::size_t> chosen(count);
  for (std::size_t i = 0; i < count; ++i) {
    chosen[i] = all[i * all.size() / count];
  }
  return chosen;
}

/// The tokens of some windows. The label of each position is the byte after it.
class WindowBatch {
 public:
  /// Micro-batches of \p rows windows of \p context bytes plus one; the last micro-batch has the
  /// rest.
  WindowBatch(std::string_view text,
              std::vector<std::size_t> const& starts,
              std::size_t rows,
              std::size_t context) {
    for (auto const start : starts) {
      auto const window = text.substr(start, context + 1);
      for (std::size_t i = 0; i < context; ++i) {
        tokens_.push_back(static_cast<unsigned char>(window[i]));
        labels_.push_back(static_cast<unsigned char>(window[i + 1]));
      }
    }
    for (std::size_t done = 0; done < starts.size(); done += rows) {
      shapes_.push_back({static_cast<std::int64_t>(std::min(rows, starts.size() - done)),
                         static_cast<std::int64_t>(context)});
    }
  }

  /// Views; they live as long as this object.
  [[nodiscard]] roundpipe::Batch view() const {
    roundpipe::Batch batch(shapes_);
    batch.set("tokens", tokens_);
    batch.set("labels", labels_);
    return batch;
  }
  /// The number of predicted positions.
  [[nodiscard]] std::size_t size() const noexcept { return tokens_.size(); }

 private:
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> labels_;
  std::vector<roundpipe::BatchShape> shapes_;
};

}  // namespace train_text
