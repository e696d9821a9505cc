// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The content of a picture of a timeline, and the labels of its boxes.

#include <roundpipe/trace/svg_canvas.hpp>
#include <roundpipe/trace/svg_palette.hpp>
#include <roundpipe/trace/timeline_boxes.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace roundpipe {

/// What labels of boxes show, where they fit.
enum class SvgLabels : std::uint8_t {
  none,
  layers,         ///< "F 0-6" or, where space is short, "0-6".
  micro_batches,  ///< "F 3" or "3".
  both,           ///< "F 0-6.m3", "0-6.m3" or "m3".
};

/// What a strip below the boxes marks by alternating dark and light.
enum class SvgTurns : std::uint8_t { none, calls, rounds };

/// The options of `write_svg_timeline`.
struct SvgOptions {
  double width = 1000;                   ///< Of the picture, in pixels, at least 400.
  double row_height = 28;                ///< Of a device's boxes, in pixels, at least 4; labels: 8.
  std::optional<double> from_s;          ///< Where the axis begins; none: at the first box.
  std::optional<double> to_s;            ///< Where the axis ends; none: at the last box.
  std::string title;                     ///< UTF-8, for example the schedule's name.
  std::optional<double> bubble_percent;  ///< Appended to the title.
  SvgLabels labels = SvgLabels::both;
  SvgTurns turns = SvgTurns::none;
  bool copy_lanes = false;  ///< Whether thin rows below each device show its copies.
};

namespace detail {

/// The possible labels of \p box without the kind, from the most detailed to the shortest.
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

/// The explanation of the labels in the legend.
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

/// The most detailed label of \p box for a rectangle of this size: with the kind's letter if there
/// is enough room, otherwise in a smaller font if necessary; none if nothing fits.
[[nodiscard]] inline std::optional<SvgLabel> fitting_label(TimelineBox const& box,
                                                           SvgLabels labels,
                                                           double width_px,
                                                           double height_px) {
  constexpr double room_px = 2;  // on both sides together
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
