// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "curve.hpp"

#include <roundpipe/io/file_error.hpp>
#include <roundpipe/trace/svg_canvas.hpp>
#include <roundpipe/trace/time_axis.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>

namespace finetune {

namespace {

namespace svg = roundpipe::detail;
using Point = std::array<double, 2>;

/// Where steps and losses lie in the picture.
struct Axes {
  double width = 760;
  double height = 360;
  double left = 64;
  double right = 16;
  double top = 40;
  double bottom = 44;
  double last_step = 1;
  double lowest = 0;
  double highest = 1;

  [[nodiscard]] double x(double step) const {
    return left + (width - left - right) * step / last_step;
  }
  [[nodiscard]] double y(double loss) const {
    return height - bottom - (height - top - bottom) * (loss - lowest) / (highest - lowest);
  }
};

Axes axes_of(LossCurve const& curve) {
  Axes axes;
  axes.last_step = static_cast<double>(std::max<std::size_t>(1, curve.losses.size()));
  auto values = curve.losses;
  for (auto const& evaluation : curve.evaluations) {
    values.push_back(evaluation.loss);
  }
  if (!values.empty()) {
    auto const [low, high] = std::minmax_element(values.begin(), values.end());
    auto const margin = std::max(0.05 * (*high - *low), 1e-3);
    axes.lowest = std::max(0.0, *low - margin);
    axes.highest = *high + margin;
  }
  return axes;
}

void draw_grid(svg::SvgCanvas& canvas, Axes const& axes) {
  constexpr char const* grey = "#d9d9d9";
  auto const line = [&](Point from, Point to) { canvas.line(std::array{from, to}, grey, 1); };
  auto const loss = svg::round_step(axes.highest - axes.lowest, 6);
  for (auto value = std::ceil(axes.lowest / loss.size) * loss.size; value <= axes.highest;
       value += loss.size) {
    line({axes.left, axes.y(value)}, {axes.width - axes.right, axes.y(value)});
    canvas.text(axes.left - 6,
                axes.y(value),
                svg::fixed_number(value, loss.decimals),
                {.anchor = svg::Anchor::end});
  }
  auto const step = svg::round_step(axes.last_step, 8);
  auto const whole = std::max(1.0, step.size);
  for (double value = 0; value <= axes.last_step; value += whole) {
    line({axes.x(value), axes.height - axes.bottom}, {axes.x(value), axes.top});
    canvas.text(axes.x(value),
                axes.height - axes.bottom + 14,
                svg::fixed_number(value, 0),
                {.anchor = svg::Anchor::middle});
  }
  canvas.text(
      axes.x(axes.last_step / 2), axes.height - 12, "step", {.anchor = svg::Anchor::middle});
}

/// At most as many points as the picture is wide, each the mean of its steps.
std::vector<Point> points_of(std::vector<double> const& losses,
                             std::size_t most,
                             Axes const& axes) {
  std::vector<Point> points;
  auto const count = std::min(most, losses.size());
  for (std::size_t i = 0; i < count; ++i) {
    auto const first = losses.size() * i / count;
    auto const end = losses.size() * (i + 1) / count;
    double sum = 0;
    for (auto k = first; k < end; ++k) {
      sum += losses[k];
    }
    auto const middle = static_cast<double>(first + end + 1) / 2;
    points.push_back({axes.x(middle), axes.y(sum / static_cast<double>(end - first))});
  }
  return points;
}

}  // namespace

nlohmann::json LossCurve::json() const {
  auto evaluated = nlohmann::json::array();
  for (auto const& [step, loss] : evaluations) {
    evaluated.push_back({step, loss});
  }
  return {{"losses", losses}, {"evaluations", std::move(evaluated)}};
}

LossCurve LossCurve::from(nlohmann::json const& json, std::int64_t steps, std::string const& file) {
  LossCurve curve;
  try {
    curve.losses = json.at("losses").get<std::vector<double>>();
    for (auto const& pair : json.at("evaluations")) {
      curve.evaluations.push_back({pair.at(0).get<std::int64_t>(), pair.at(1).get<double>()});
    }
  } catch (nlohmann::json::exception const&) {
    throw roundpipe::bad_file(file, "program", "is not that of this program");
  }
  if (curve.losses.size() != static_cast<std::size_t>(steps)) {
    throw roundpipe::bad_file(file, "program.losses", "are not one a step");
  }
  return curve;
}

std::string LossCurve::csv() const {
  std::map<std::int64_t, double> evaluated;
  for (auto const& [step, loss] : evaluations) {
    evaluated[step] = loss;
  }
  std::string text = "step,loss,evaluation_loss\n";
  for (std::size_t step = 0; step <= losses.size(); ++step) {
    auto const found = evaluated.find(static_cast<std::int64_t>(step));
    if (step > 0 || found != evaluated.end()) {
      text += fmt::format("{},{},{}\n",
                          step,
                          step > 0 ? fmt::format("{}", losses[step - 1]) : "",
                          found != evaluated.end() ? fmt::format("{}", found->second) : "");
    }
  }
  return text;
}

std::string LossCurve::svg(std::string const& title) const {
  constexpr char const* thin = "#9fc9e8";
  constexpr char const* thick = "#00518a";
  constexpr char const* held_out = "#bf4f00";
  auto const axes = axes_of(*this);
  svg::SvgCanvas canvas;
  draw_grid(canvas, axes);
  canvas.line(points_of(losses, 700, axes), thin, 1);
  canvas.line(points_of(losses, 50, axes), thick, 2);
  std::vector<Point> evaluated;
  for (auto const& [step, loss] : evaluations) {
    evaluated.push_back({axes.x(static_cast<double>(step)), axes.y(loss)});
    canvas.rectangle(evaluated.back()[0] - 2.5, evaluated.back()[1] - 2.5, 5, 5, held_out);
  }
  canvas.line(evaluated, held_out, 1.5);
  canvas.text(axes.left, 18, title, {.font_px = 13});
  auto const legend = [&](double x, char const* text, char const* fill) {
    canvas.text(x, 18, text, {.fill = fill, .anchor = svg::Anchor::end});
  };
  legend(axes.width - axes.right, "evaluation", held_out);
  legend(axes.width - axes.right - 90, "loss of a step", thick);
  return canvas.picture(axes.width, axes.height, title);
}

}  // namespace finetune
