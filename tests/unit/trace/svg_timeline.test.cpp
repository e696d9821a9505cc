// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/trace/svg_timeline.hpp>

#include <roundpipe/core/error.hpp>
#include <support/svg_reader.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace svg_timeline_test {

namespace {

using namespace roundpipe;
using test::SvgElement;
using test::SvgReader;

TimelineEntry action(
    ActionKind kind, int device, int micro_batch, int layer, double start_s, double end_s) {
  TimelineEntry entry;
  entry.kind = kind;
  entry.lane = {LaneKind::compute, DeviceId(device)};
  entry.stage = StageId(0);
  entry.round = RoundId(0);
  entry.micro_batch = MicroBatchId(micro_batch);
  entry.layer = LayerId(layer);
  entry.start_s = start_s;
  entry.end_s = end_s;
  return entry;
}

/// Two devices. The second waits for the first, whose forward of micro-batch 0 has two layers.
Timeline example() {
  return {2,
          {action(ActionKind::forward, 0, 0, 0, 0, 1),
           action(ActionKind::forward, 0, 0, 1, 1, 2),
           action(ActionKind::forward, 0, 1, 0, 2, 4),
           action(ActionKind::recompute, 1, 0, 2, 2, 4),
           action(ActionKind::backward, 1, 0, 2, 4, 10)}};
}

std::string written(Timeline const& timeline, SvgOptions const& options = {}) {
  std::ostringstream out;
  write_svg_timeline(out, timeline, options);
  return out.str();
}

std::vector<std::string> texts(SvgReader const& picture) {
  std::vector<std::string> result;
  for (auto const& element : picture.named("text")) {
    result.push_back(element.text);
  }
  return result;
}

bool shows(SvgReader const& picture, std::string const& text) {
  auto const all = texts(picture);
  return std::ranges::find(all, text) != all.end();
}

std::vector<SvgElement> filled(SvgReader const& picture, std::string_view fill) {
  std::vector<SvgElement> result;
  for (auto const& element : picture.named("rect")) {
    if (element.attributes.at("fill") == fill) {
      result.push_back(element);
    }
  }
  return result;
}

/// The boxes of a kind; the swatch of the legend comes last.
std::vector<SvgElement> boxes(SvgReader const& picture, ActionKind kind) {
  auto result = filled(picture, detail::look_of(kind).fill);
  result.pop_back();
  return result;
}

struct Area {
  double left, top, right, bottom;

  [[nodiscard]] bool overlaps(Area const& other) const {
    constexpr double slack = 0.02;  // lengths are written in hundredths
    return left + slack < other.right && other.left + slack < right && top + slack < other.bottom &&
           other.top + slack < bottom;
  }
};

/// The area of a text: its capitals and digits, as wide as in a wide font.
Area area_of(SvgElement const& text) {
  auto const font_px = text.number("font-size");
  auto const width = detail::text_width(text.text, font_px);
  auto const& anchor = text.attributes.at("text-anchor");
  auto const left = text.number("x") - (anchor == "middle" ? width / 2
                                        : anchor == "end"  ? width
                                                           : 0);
  return {left, text.number("y") - 0.75 * font_px, left + width, text.number("y")};
}

/// Random work on random lanes of \p devices devices and of the host.
Timeline random_timeline(std::mt19937& random, std::size_t devices, std::size_t count) {
  Timeline timeline{devices, {}};
  std::map<Lane, double> free_s;
  for (std::size_t i = 0; i < count; ++i) {
    auto const device = static_cast<int>(random() % devices);
    auto const kind = static_cast<ActionKind>(
        random() % (static_cast<std::size_t>(ActionKind::copy_parameters) + 1));
    auto entry = action(kind, device, static_cast<int>(random() % 20), 0, 0, 0);
    entry.layer = LayerId(random() % 40);
    entry.graph = random() % 4;
    entry.round = RoundId(random() % 2);
    entry.lane.kind = static_cast<LaneKind>(random() % device_lane_count);
    if (random() % 8 == 0) {
      entry.lane = {LaneKind::optimizer, DeviceId::none()};
    }
    auto& free = free_s[entry.lane];
    entry.start_s = free + static_cast<double>(random() % 3) * 0.01;
    entry.end_s = entry.start_s + static_cast<double>(random() % 100) * 0.01;
    free = entry.end_s;
    timeline.entries.push_back(entry);
  }
  return timeline;
}

}  // namespace

TEST_CASE("A task is one box, as long as its actions, at their times") {
  SvgReader const picture(written(example()));
  auto const forward = boxes(picture, ActionKind::forward);
  auto const recompute = boxes(picture, ActionKind::recompute);
  auto const backward = boxes(picture, ActionKind::backward);
  REQUIRE(forward.size() == 2);  // of three actions
  REQUIRE(recompute.size() == 1);
  REQUIRE(backward.size() == 1);
  auto const scale = forward[1].number("x") - forward[0].number("x");  // 2 s
  CHECK(recompute[0].number("x") == doctest::Approx(forward[1].number("x")));
  CHECK(backward[0].number("x") - recompute[0].number("x") == doctest::Approx(scale));
  CHECK(backward[0].number("width") == doctest::Approx(3 * scale).epsilon(0.01));
  CHECK(forward[0].number("y") == forward[1].number("y"));
  CHECK(forward[0].number("y") + 28 < backward[0].number("y"));
  CHECK(shows(picture, "F 0-1.m0"));
  CHECK(shows(picture, "F 0.m1"));
  CHECK(shows(picture, "B 2.m0"));
}

TEST_CASE("Devices are named, and idle time is hatched from beginning to end") {
  SvgReader const picture(written(example()));
  CHECK(shows(picture, "device 0"));
  CHECK(shows(picture, "device 1"));
  auto const idle = filled(picture, "url(#hatch)");
  REQUIRE(idle.size() == 3);  // device 0 from 4 to 10 s, device 1 to 2 s, the legend
  auto const backward = boxes(picture, ActionKind::backward).at(0);
  CHECK(idle[0].number("x") == doctest::Approx(backward.number("x")));
  CHECK(idle[1].number("x") == boxes(picture, ActionKind::forward).at(0).number("x"));
  CHECK(shows(picture, "bubble"));
}

TEST_CASE("An interval is cut out, and the axis counts from its beginning") {
  SvgOptions options;
  options.from_s = 4;
  options.to_s = 8;
  SvgReader const picture(written(example(), options));
  CHECK(filled(picture, detail::look_of(ActionKind::forward).fill).empty());
  CHECK_FALSE(shows(picture, "forward"));  // the legend shows only what is drawn
  auto const backward = boxes(picture, ActionKind::backward).at(0);
  auto const idle = filled(picture, "url(#hatch)").at(0);
  CHECK(backward.number("x") == idle.number("x"));
  CHECK(backward.number("width") == doctest::Approx(idle.number("width")).epsilon(0.01));
  CHECK(shows(picture, "0.0 s"));
  CHECK(shows(picture, "4.0 s"));
  CHECK_FALSE(shows(picture, "8.0 s"));
}

TEST_CASE("A title and a bubble ratio are written as given") {
  SvgOptions options;
  options.title = "1F1B & <friends>";
  CHECK(shows(SvgReader(written(example(), options)), "1F1B & <friends>"));
  options.bubble_percent = 12.345;
  SvgReader const picture(written(example(), options));
  CHECK(shows(picture, "1F1B & <friends>: 12.3 % bubbles"));
  CHECK(picture.elements[0].attributes.at("aria-label") == "1F1B & <friends>: 12.3 % bubbles");
  options.title.clear();
  CHECK(shows(SvgReader(written(example(), options)), "12.3 % bubbles"));
}

TEST_CASE("Copies have their own rows on request, work of the host has none") {
  auto timeline = example();
  auto upload = action(ActionKind::upload_parameters, 1, 0, 0, 0, 2);
  upload.lane.kind = LaneKind::parameter_up;
  auto step = action(ActionKind::optimizer_step, 0, 0, 0, 10, 50);
  step.lane = {LaneKind::optimizer, DeviceId::none()};
  timeline.entries.push_back(upload);
  timeline.entries.push_back(step);
  CHECK(written(timeline) == written(example()));

  SvgOptions options;
  options.copy_lanes = true;
  SvgReader const picture(written(timeline, options));
  CHECK(boxes(picture, ActionKind::upload_parameters).size() == 1);
  CHECK(shows(picture, "copy of a chunk"));
  auto const all = texts(picture);
  CHECK(std::ranges::count(all, "parameter up") == 2);
  CHECK(std::ranges::count(all, "gradient down") == 2);
  CHECK(std::ranges::count(all, "save up") == 0);
  CHECK(std::ranges::count(all, "peer") == 0);
  timeline.entries.back() = action(ActionKind::send_boundary, 0, 0, 0, 1, 2);
  timeline.entries.back().lane.kind = LaneKind::peer;
  CHECK(std::ranges::count(texts(SvgReader(written(timeline, options))), "peer") == 2);
  CHECK_FALSE(shows(picture, "optimizer"));
}

TEST_CASE("Calls and rounds alternate between dark and light") {
  Timeline timeline{1, {}};
  for (int i = 0; i < 6; ++i) {
    timeline.entries.push_back(action(ActionKind::forward, 0, i, 0, i, i + 1));
    timeline.entries.back().graph = static_cast<std::size_t>(i) / 4 * 2;  // steps lie between calls
    timeline.entries.back().round = RoundId(i / 2 % 2);
    timeline.entries.push_back(action(ActionKind::optimizer_step, 0, 0, 0, i, i + 1));
    timeline.entries.back().lane = {LaneKind::optimizer, DeviceId::none()};
    timeline.entries.back().graph = 1;
  }
  auto const strips = [&](SvgTurns turns, std::string_view fill) {
    SvgOptions options;
    options.turns = turns;
    return filled(SvgReader(written(timeline, options)), fill).size();
  };
  auto const* const dark = "#404040";
  auto const* const light = "#c8c8c8";
  CHECK(strips(SvgTurns::none, dark) == 0);
  CHECK(strips(SvgTurns::calls, dark) == 1 + 1);  // one belongs to the legend
  CHECK(strips(SvgTurns::calls, light) == 1 + 1);
  CHECK(strips(SvgTurns::rounds, dark) == 2 + 1);
  CHECK(strips(SvgTurns::rounds, light) == 1 + 1);

  SvgOptions options;
  options.turns = SvgTurns::calls;
  SvgReader const picture(written(timeline, options));
  auto const swatch_end = [&](std::string_view fill) {
    auto const swatch = filled(picture, fill).back();
    return swatch.number("x") + swatch.number("width");
  };
  CHECK(filled(picture, dark).back().number("x") < filled(picture, light).back().number("x"));
  CHECK(swatch_end(dark) == doctest::Approx(swatch_end(light)));  // light lies on its right half
}

TEST_CASE("A picture uses plain SVG only") {
  SvgOptions options;
  options.title = "t";
  options.turns = SvgTurns::calls;
  options.copy_lanes = true;
  std::mt19937 random(7);
  SvgReader const picture(written(random_timeline(random, 3, 100), options));
  std::set<std::string> const plain{"svg", "defs", "pattern", "rect", "text"};
  for (auto const& element : picture.elements) {
    CHECK(plain.contains(element.name));
    CHECK_FALSE(element.attributes.contains("style"));
    CHECK_FALSE(element.attributes.contains("class"));
  }
  CHECK(picture.elements[0].attributes.at("font-family") == "sans-serif");
  // A white background, whatever the reader's own colour.
  auto const ground = filled(picture, "#ffffff").at(1);
  CHECK(ground.attributes.at("width") == picture.elements[0].attributes.at("width"));
  CHECK(ground.attributes.at("height") == picture.elements[0].attributes.at("height"));
}

TEST_CASE("Texts do not overlap, and nothing leaves the picture") {
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    std::size_t const devices = 1 + random() % 12;
    auto const timeline = random_timeline(random, devices, 20 + random() % 200);
    SvgOptions options;
    options.width = 400 + static_cast<double>(i % 2 == 0 ? 0 : random() % 1200);
    options.row_height = 4 + static_cast<double>(random() % 40);
    options.title = std::string(random() % 200, 'm');
    options.labels = static_cast<SvgLabels>(random() % 4);
    options.turns = static_cast<SvgTurns>(random() % 3);
    options.copy_lanes = random() % 2 == 0;
    options.from_s = static_cast<double>(random() % 3);
    options.to_s = *options.from_s + static_cast<double>(1 + random() % 2000) * 1e-3;
    SvgReader const picture(written(timeline, options));
    auto const height = picture.elements[0].number("height");
    Area const all{0, 0, options.width, height};
    auto const is_inside = [&](Area const& area) {
      return area.left >= -0.02 && area.top >= -0.02 && area.right <= all.right + 0.02 &&
             area.bottom <= all.bottom + 0.02;
    };
    std::vector<Area> areas;
    for (auto const& text : picture.named("text")) {
      areas.push_back(area_of(text));
      CAPTURE(text.text);
      CHECK(is_inside(areas.back()));
    }
    std::size_t overlaps = 0;
    for (std::size_t a = 0; a < areas.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        overlaps += areas[a].overlaps(areas[b]) ? 1 : 0;
      }
    }
    CHECK(overlaps == 0);
    for (auto const& rectangle : picture.named("rect")) {
      if (rectangle.attributes.contains("x")) {
        auto const x = rectangle.number("x");
        auto const y = rectangle.number("y");
        CHECK(rectangle.number("width") >= 0);
        CHECK(is_inside({x, y, x + rectangle.number("width"), y + rectangle.number("height")}));
      }
    }
  }
}

TEST_CASE("Invalid timelines are refused, and no file remains") {
  CHECK_THROWS_AS(written({}), Error);
  CHECK_THROWS_AS(written({2, {action(ActionKind::forward, 2, 0, 0, 0, 1)}}), Error);
  auto const refuses = [](auto change) {
    SvgOptions options;
    change(options);
    CHECK_THROWS_AS(written(example(), options), Error);
  };
  refuses([](SvgOptions& options) { options.width = 399; });
  refuses([](SvgOptions& options) { options.width = std::numeric_limits<double>::infinity(); });
  refuses([](SvgOptions& options) { options.row_height = 3; });
  refuses([](SvgOptions& options) { options.from_s = 10; });
  refuses([](SvgOptions& options) { options.to_s = 0; });
  refuses([](SvgOptions& options) { options.to_s = std::numeric_limits<double>::quiet_NaN(); });

  test::TemporaryFolder const folder;
  CHECK_THROWS_AS(save_svg_timeline(folder.path / "x.svg", {}), Error);
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("A given interval is drawn, even if nothing happens in it") {
  SvgOptions options;
  options.from_s = 0;
  options.to_s = 1;
  SvgReader const picture(written({3, {}}, options));
  CHECK(filled(picture, "url(#hatch)").size() == 3 + 1);
}

TEST_CASE("A file has the same content as a stream, and a failing stream is an error") {
  test::TemporaryFolder const folder;
  auto const path = folder.path / "timeline.svg";
  save_svg_timeline(path, example());
  std::ifstream file(path, std::ios::binary);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == written(example()));

  std::ostringstream out;
  out.setstate(std::ios::badbit);
  CHECK_THROWS_AS(write_svg_timeline(out, example()), Error);
}

}  // namespace svg_timeline_test
