// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/trace/svg_canvas.hpp>

#include <support/svg_reader.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace svg_canvas_test {

using namespace roundpipe;
using detail::Anchor;
using detail::SvgCanvas;
using test::SvgReader;

TEST_CASE("Any text can be read back from a picture, from an element and from an attribute") {
  std::string const awkward = "1F1B & <b>\"so\" 'n' ]]> &amp; \xC3\xA9";
  SvgCanvas canvas;
  canvas.text(1, 2, awkward, {});
  SvgReader const reader(canvas.picture(100, 50, awkward));
  CHECK(reader.named("text").at(0).text == awkward);
  CHECK(reader.named("svg").at(0).attributes.at("aria-label") == awkward);
}

TEST_CASE("Characters that XML cannot represent become question marks") {
  CHECK(detail::xml_text(std::string("a\0b\x1B\tc", 6)) == "a?b?\tc");
}

TEST_CASE("The tests' reader refuses malformed XML") {
  for (auto const* text : {"<a>",
                           "<a></b>",
                           "<a b=\"1\" b=\"2\"/>",
                           "<a>&</a>",
                           "<a>&x;</a>",
                           "<a/><a/>",
                           "<a b=\"<\"/>"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(SvgReader{text}, std::runtime_error);
  }
}

TEST_CASE("Shapes keep their positions and their order") {
  SvgCanvas canvas;
  canvas.rectangle(1.25, 2, 3.004, 4, "#123456");
  canvas.text(5, 20, "t", {.font_px = 10, .fill = "#ffffff", .anchor = Anchor::end});
  SvgReader const reader(canvas.picture(100, 50, ""));
  CHECK(reader.named("svg").at(0).attributes.at("viewBox") == "0 0 100 50");
  auto const count = reader.elements.size();
  REQUIRE(count > 3);
  auto const& background = reader.elements[count - 3].attributes;
  CHECK(background.at("width") == "100");
  CHECK(background.at("height") == "50");
  CHECK(background.at("fill") == "#ffffff");
  auto const& rectangle = reader.elements[count - 2].attributes;
  CHECK(rectangle.at("x") == "1.25");
  CHECK(rectangle.at("y") == "2");
  CHECK(rectangle.at("width") == "3");
  CHECK(rectangle.at("height") == "4");
  CHECK(rectangle.at("fill") == "#123456");
  auto const& text = reader.elements[count - 1].attributes;
  CHECK(text.at("y") == "23.6");  // the baseline that centres the text at 20
  CHECK(text.at("text-anchor") == "end");
}

TEST_CASE("The picture defines its hatched fill") {
  SvgReader const reader(SvgCanvas().picture(10, 10, ""));
  CHECK(reader.named("pattern").at(0).attributes.at("id") == "hatch");
}

TEST_CASE("Lengths are written as short as hundredths allow") {
  CHECK(detail::svg_number(0) == "0");
  CHECK(detail::svg_number(-0.001) == "0");
  CHECK(detail::svg_number(100) == "100");
  CHECK(detail::svg_number(0.5) == "0.5");
  CHECK(detail::svg_number(-12.345) == "-12.35");
  CHECK(detail::svg_number(1e6) == "1000000");
}

TEST_CASE("The width of a text grows with its characters, not with its bytes") {
  CHECK(detail::text_width("", 10) == 0);
  CHECK(detail::text_width("00", 10) == doctest::Approx(2 * detail::text_width("0", 10)));
  CHECK(detail::text_width("0", 20) == doctest::Approx(2 * detail::text_width("0", 10)));
  CHECK(detail::text_width("\xC3\xA9", 10) == detail::text_width("e", 10));
  CHECK(detail::text_width("i", 10) < detail::text_width("a", 10));
  CHECK(detail::text_width("a", 10) < detail::text_width("m", 10));
}

}  // namespace svg_canvas_test
