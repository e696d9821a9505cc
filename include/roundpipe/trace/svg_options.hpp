// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a picture of a timeline shows, and how its boxes are labelled.

#include <roundpipe/trace/svg_canvas.hpp>
#include <roundpipe/trace/svg_palette.hpp>
#include <roundpipe/trace/timeline_boxes.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace roundpipe {

/// What boxes are labelled with, where it fits.
enum class SvgLabels : std::uint8_t {
  none,
  layers,         ///< "F 0-6" or, where that does not fit, "0-6".
  micro_batches,  ///< "F 3" or "3".
  both,           ///< "F 0-6.m3", "0-6.m3" or "m3".
};

/// What a strip beneath the boxes tells apart by turns of dark and light.
enum class SvgTurns : std::uint8_t { none, calls, rounds };

/// What `write_svg_timeline` draws.
struct SvgOptions {
  double width = 1000;                   ///< Of the picture, in pixels, from 400.
  double row_height = 28;                ///< Of a device's boxes, in pixels, from 4; labels want 8.
  std::optional<double> from_s;          ///< Where the axis begins; none: where the first box does.
  std::optional<double> to_s;            ///< Where the axis ends; none: where the last box does.
  std::string title;                     ///< UTF-8, for example the schedule's name.
  std::optional<double> bubble_percent;  ///< Written behind the title.
  SvgLabels labels = SvgLabels::both;
  SvgTurns turns = SvgTurns::none;
  bool copy_lanes = false;  ///< Whether thin rows beneath each device show its copies.
};

namespace detail {

/// What \p box may be labelled with, the kind aside, from what says most to the shortest.
[[nodiscard]] inline std::vector<std::string> labels_of(TimelineBox const& box, SvgLabels labels) {
  auto const number = [](auto id) { return std::to_string(id.value()); };
  std::string layers;
  if (labels != SvgLabels::micro_batches && box.first_layer.valid()) {
    layers = number(box.first_layer);
    if (box.first_layer != box.last_layer) {
      layers += "-" + number(box.last_layer);
    }
  }
  std::string micro_batch;
  if (labels != SvgLabels::layers && box.micro_batch.valid()) {
    micro_batch = (labels == SvgLabels::both ? "m" : "") + number(box.micro_batch);
  }
  auto const all = layers + (layers.empty() || micro_batch.empty() ? "" : ".") + micro_batch;
  std::vector<std::string> result;
  if (labels != SvgLabels::none && !all.empty()) {
    result.push_back(all);
    if (!micro_batch.empty() && micro_batch != all) {
      result.push_back(micro_batch);
    }
  }
  return result;
}

/// How the legend explains them.
[[nodiscard]] inline std::string meaning_of(SvgLabels labels) {
  switch (labels) {
    case SvgLabels::none:
      return {};
    case SvgLabels::layers:
      return "numbers: layers";
    case SvgLabels::micro_batches:
      return "numbers: micro-batches";
    case SvgLabels::both:
      return "0-6.m3: layers 0 to 6, micro-batch 3";
  }
  return {};
}

struct SvgLabel {
  std::string text;
  double font_px = 0;
};

/// What says most of \p box in a rectangle of this size: with the kind's letter where there is much
/// room, else in a smaller font if it must be; none where nothing fits.
[[nodiscard]] inline std::optional<SvgLabel> fitting_label(TimelineBox const& box,
                                                           SvgLabels labels,
                                                           double width_px,
                                                           double height_px) {
  constexpr double room_px = 2;  // at the sides, together
  auto const fits = [&](SvgLabel const& label) {
    return text_width(label.text, label.font_px) + room_px <= width_px &&
           label.font_px <= height_px;
  };
  auto const letter = std::string(look_of(box.kind).letter);
  for (auto const& text : labels_of(box, labels)) {
    for (auto const& label : {SvgLabel{letter + " " + text, 11},
                              SvgLabel{text, 11},
                              SvgLabel{text, 9},
                              SvgLabel{text, 8}}) {
      if (fits(label)) {
        return label;
      }
    }
  }
  return std::nullopt;
}

}  // namespace detail

}  // namespace roundpipe
