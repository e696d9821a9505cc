// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The parts that explain a picture: its title, its time axis and its legend.

#include <roundpipe/trace/svg_canvas.hpp>
#include <roundpipe/trace/time_axis.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe::detail {

inline constexpr double guide_font_px = 11;

/// Draws \p title from \p left to \p right, smaller if necessary. \returns the y at which the title
/// ends.
inline double draw_title(
    SvgCanvas& canvas, std::string_view title, double left, double right, double top) {
  constexpr double title_px = 15;
  auto const font_px = std::min(title_px, (right - left) / text_width(title, 1));
  canvas.text(left, top + title_px / 2, title, {.font_px = font_px});
  return top + title_px;
}

/// Draws an axis of \p span_s seconds from \p left to \p right, with round numbers below it.
/// \returns the y at which the numbers end. The last number may extend beyond \p right by half its
/// width.
inline double draw_axis(SvgCanvas& canvas, double span_s, double left, double right, double top) {
  constexpr double least_px = 90;  // from number to number
  constexpr double tick_px = 5;
  constexpr double gap_px = 2;
  auto const width_px = right - left;
  auto const most = std::max<std::size_t>(1, static_cast<std::size_t>(width_px / least_px));
  canvas.rectangle(left, top, width_px, 1, "#000000");
  for (auto const& tick : time_ticks(span_s, most)) {
    auto const x = left + tick.at_s / span_s * width_px;
    canvas.rectangle(x - 0.5, top, 1, tick_px, "#000000");
    canvas.text(x,
                top + tick_px + gap_px + guide_font_px / 2,
                tick.label,
                {guide_font_px, "#000000", Anchor::middle});
  }
  return top + tick_px + gap_px + guide_font_px;
}

struct LegendItem {
  std::string_view fill;         ///< Of the swatch; empty: no swatch.
  std::string_view second_fill;  ///< Of the swatch's right half; empty: the same.
  std::string_view letter;       ///< On the swatch.
  std::string_view ink;          ///< Of the letter.
  std::string name;
};

/// Draws \p items, swatches and their meanings, in as many lines as necessary, from \p left to \p
/// right and from \p top downwards. \returns the y at which the lines end.
inline double draw_legend(SvgCanvas& canvas,
                          std::vector<LegendItem> const& items,
                          double left,
                          double right,
                          double top) {
  constexpr double swatch_px = 18;
  constexpr double height_px = 14;
  constexpr double gap_px = 6;
  double x = left;
  double y = top;
  for (auto const& item : items) {
    auto const name_px = item.fill.empty() ? 0 : swatch_px + gap_px;  // from the left of the item
    auto const width_px = name_px + text_width(item.name, guide_font_px);
    if (x > left && x + width_px > right) {
      x = left;
      y += height_px + gap_px;
    }
    auto const middle_y = y + height_px / 2;
    if (!item.fill.empty()) {
      canvas.rectangle(x, y, swatch_px, height_px, item.fill);
    }
    if (!item.second_fill.empty()) {
      canvas.rectangle(x + swatch_px / 2, y, swatch_px / 2, height_px, item.second_fill);
    }
    if (!item.letter.empty()) {
      canvas.text(
          x + swatch_px / 2, middle_y, item.letter, {guide_font_px, item.ink, Anchor::middle});
    }
    canvas.text(x + name_px, middle_y, item.name, {.font_px = guide_font_px});
    x += width_px + 2 * gap_px;
  }
  return y + height_px;
}

}  // namespace roundpipe::detail
