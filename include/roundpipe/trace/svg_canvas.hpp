// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The few SVG shapes that make up pictures of timelines.

#include <roundpipe/trace/time_axis.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace roundpipe::detail {

/// Escapes \p text, which is UTF-8, for XML elements and attributes. Characters that XML 1.0 cannot
/// represent become question marks.
[[nodiscard]] inline std::string xml_text(std::string_view text) {
  std::string result;
  for (char const c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&apos;";
        break;
      default: {
        bool const is_control = static_cast<unsigned char>(c) < 0x20;
        result += is_control && c != '\t' && c != '\n' && c != '\r' ? '?' : c;
      }
    }
  }
  return result;
}

/// A length in pixels, rounded to hundredths, as short as possible.
[[nodiscard]] inline std::string svg_number(double value) {
  auto text = fixed_number(value, 2);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') {
    text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

/// An upper bound for the width of \p text in any common sans-serif font (DejaVu and Verdana are
/// the widest), so that a box of this width holds the text.
[[nodiscard]] inline double text_width(std::string_view text, double font_px) {
  double ems = 0;
  for (char const c : text) {
    bool const is_continued = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;  // of UTF-8
    bool const is_narrow =
        std::string_view(" .,:;'|!ijlI()[]-tf").find(c) != std::string_view::npos;
    bool const is_wide = std::string_view("mwMW%@").find(c) != std::string_view::npos;
    bool const is_capital = c >= 'A' && c <= 'Z';
    ems += is_continued ? 0 : is_narrow ? 0.42 : is_wide ? 1 : is_capital ? 0.77 : 0.65;
  }
  return ems * font_px;
}

enum class Anchor { start, middle, end };

/// The look of a text. \c anchor says which part of the text is at its position.
struct TextStyle {
  double font_px = 11;
  std::string_view fill = "#000000";
  Anchor anchor = Anchor::start;
};

/// Collects shapes, each over the earlier ones. Lengths are pixels; y grows downwards.
class SvgCanvas {
 public:
  void rectangle(double x, double y, double width, double height, std::string_view fill) {
    shapes_ += "<rect x=\"" + svg_number(x) + "\" y=\"" + svg_number(y) + "\" width=\"" +
               svg_number(width) + "\" height=\"" + svg_number(height) + "\" fill=\"" +
               std::string(fill) + "\"/>\n";
  }

  /// Draws a line through \p points, of x and y each.
  void line(std::span<std::array<double, 2> const> points, std::string_view stroke, double width) {
    shapes_ += "<polyline fill=\"none\" stroke=\"" + std::string(stroke) + "\" stroke-width=\"" +
               svg_number(width) + "\" points=\"";
    for (auto const& [x, y] : points) {
      shapes_ += (shapes_.back() == '"' ? "" : " ") + svg_number(x) + "," + svg_number(y);
    }
    shapes_ += "\"/>\n";
  }

  /// Draws \p text; the middle of its capitals and digits is at \p middle_y.
  void text(double x, double middle_y, std::string_view text, TextStyle const& style) {
    constexpr double half_capital_ems = 0.36;
    constexpr std::string_view anchors[] = {"start", "middle", "end"};
    shapes_ += "<text x=\"" + svg_number(x) + "\" y=\"" +
               svg_number(middle_y + half_capital_ems * style.font_px) + "\" font-size=\"" +
               svg_number(style.font_px) + "\" fill=\"" + std::string(style.fill) +
               "\" text-anchor=\"" + std::string(anchors[static_cast<std::size_t>(style.anchor)]) +
               "\">" + xml_text(text) + "</text>\n";
  }

  /// The picture, on white, with \p title for screen readers. \c "url(#hatch)" is a fill. The
  /// picture needs no script, style sheet or font.
  [[nodiscard]] std::string picture(double width, double height, std::string_view title) const {
    auto const w = svg_number(width);
    auto const h = svg_number(height);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h +
           "\" viewBox=\"0 0 " + w + " " + h +
           "\" font-family=\"sans-serif\" role=\"img\" aria-label=\"" + xml_text(title) +
           "\">\n<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" "
           "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
           "<rect width=\"6\" height=\"6\" fill=\"#ffffff\"/>"
           "<rect width=\"1.5\" height=\"6\" fill=\"#c4c4c4\"/></pattern></defs>\n"
           "<rect width=\"" +
           w + "\" height=\"" + h + "\" fill=\"#ffffff\"/>\n" + shapes_ + "</svg>\n";
  }

 private:
  std::string shapes_;
};

}  // namespace roundpipe::detail
