// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/trace/svg_palette.hpp>

#include <roundpipe/graph/action_graph.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace svg_palette_test {

using namespace roundpipe;
using detail::ActionLook;
using detail::look_of;

namespace {

/// Every kind: `copy_parameters` is the last one.
std::vector<ActionLook> all_looks() {
  std::vector<ActionLook> looks;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(ActionKind::copy_parameters); ++i) {
    looks.push_back(look_of(static_cast<ActionKind>(i)));
  }
  return looks;
}

std::vector<ActionLook> compute_looks() {
  auto looks = all_looks();
  std::erase_if(looks, [](ActionLook const& look) { return look.letter.empty(); });
  return looks;
}

using Rgb = std::array<double, 3>;

/// Linear light of "#rrggbb" (IEC 61966-2-1).
Rgb light_of(std::string_view colour) {
  Rgb light{};
  for (std::size_t i = 0; i < 3; ++i) {
    auto const value = std::stoi(std::string(colour.substr(1 + 2 * i, 2)), nullptr, 16) / 255.0;
    light[i] = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  }
  return light;
}

/// Relative luminance (WCAG 2.1).
double luminance(std::string_view colour) {
  auto const [red, green, blue] = light_of(colour);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/// CIE L*, from 0 to 100.
double lightness(std::string_view colour) {
  return 116 * std::cbrt(luminance(colour)) - 16;
}

double contrast(std::string_view a, std::string_view b) {
  auto const [dark, bright] = std::minmax({luminance(a), luminance(b)});
  return (bright + 0.05) / (dark + 0.05);
}

}  // namespace

TEST_CASE("Kinds of compute differ in letter, name and lightness, even without colours") {
  auto const looks = compute_looks();
  CHECK(looks.size() >= 3);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      CAPTURE(std::string(looks[i].name));
      CAPTURE(std::string(looks[j].name));
      CHECK(looks[i].letter != looks[j].letter);
      CHECK(looks[i].name != looks[j].name);
      CHECK(std::abs(lightness(looks[i].fill) - lightness(looks[j].fill)) > 12);
    }
  }
}

TEST_CASE("Text on every colour has the contrast that WCAG 2.1 requires (4.5)") {
  for (auto const& look : all_looks()) {
    CAPTURE(std::string(look.name));
    CHECK(contrast(look.fill, look.ink) >= 4.5);
  }
}

TEST_CASE("Every kind has a name, and kinds with the same name look alike") {
  for (auto const& a : all_looks()) {
    CHECK_FALSE(a.name.empty());
    for (auto const& b : all_looks()) {
      CHECK((a.name == b.name) == (a == b));
    }
  }
}

TEST_CASE("Compute is coloured; copies and work of the host are grey") {
  for (auto const& look : all_looks()) {
    CAPTURE(std::string(look.name));
    auto const [red, green, blue] = light_of(look.fill);
    CHECK(look.letter.empty() == (red == green && green == blue));
  }
}

}  // namespace svg_palette_test
