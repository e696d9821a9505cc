// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/trace/svg_guides.hpp>

#include <support/svg_reader.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace svg_guides_test {

using namespace roundpipe;
using detail::LegendItem;
using detail::SvgCanvas;
using test::SvgReader;

TEST_CASE("A title that is too long shrinks until it fits") {
  for (std::size_t const length : {5, 50, 500}) {
    SvgCanvas canvas;
    std::string const title(length, 'n');
    auto const end = detail::draw_title(canvas, title, 10, 290, 7);
    auto const text = SvgReader(canvas.picture(300, 50, "")).named("text").at(0);
    CHECK(text.number("x") == 10);
    CHECK(detail::text_width(title, text.number("font-size")) <= 281);
    CHECK(text.number("y") <= end);
    CHECK((text.number("font-size") == 15) == (length == 5));
  }
}

TEST_CASE("The round numbers of an axis are at their times") {
  SvgCanvas canvas;
  auto const end = detail::draw_axis(canvas, 4, 100, 500, 20);
  SvgReader const reader(canvas.picture(600, 50, ""));
  auto const texts = reader.named("text");
  REQUIRE(texts.size() == 5);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CHECK(texts[i].text == std::to_string(i) + " s");
    CHECK(texts[i].number("x") == doctest::Approx(100 + 100.0 * static_cast<double>(i)));
    CHECK(texts[i].number("y") <= end);
    CHECK(texts[i].attributes.at("text-anchor") == "middle");
  }
}

TEST_CASE("A legend shows every item, in lines up to its width") {
  std::vector<LegendItem> const items{{"#111111", "", "F", "#ffffff", "forward"},
                                      {"#222222", "#333333", "", "", "two halves"},
                                      {"", "", "", "", "words alone"}};
  for (double const right : {1000.0, 150.0}) {
    SvgCanvas canvas;
    auto const end = detail::draw_legend(canvas, items, 10, right, 5);
    SvgReader const reader(canvas.picture(1000, 200, ""));
    auto const texts = reader.named("text");
    REQUIRE(texts.size() == 4);
    CHECK(texts[0].text == "F");
    CHECK(texts[1].text == "forward");
    CHECK(texts[2].text == "two halves");
    CHECK(texts[3].text == "words alone");
    bool const is_wide = right == 1000;
    CHECK((texts[3].number("y") == texts[1].number("y")) == is_wide);
    for (auto const& text : texts) {
      CHECK(text.number("x") + detail::text_width(text.text, 11) <= right);
      CHECK(text.number("y") <= end);
    }
    std::size_t swatches = 0;
    for (auto const& rectangle : reader.named("rect")) {
      auto const& fill = rectangle.attributes.at("fill");
      swatches += fill == "#111111" || fill == "#222222" || fill == "#333333" ? 1 : 0;
    }
    CHECK(swatches == 3);
  }
}

}  // namespace svg_guides_test
