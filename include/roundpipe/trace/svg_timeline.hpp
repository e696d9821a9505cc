// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Draws a timeline as an SVG picture: a row for each device, a box for each task.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/trace/svg_canvas.hpp>
#include <roundpipe/trace/svg_guides.hpp>
#include <roundpipe/trace/svg_options.hpp>
#include <roundpipe/trace/svg_palette.hpp>
#include <roundpipe/trace/time_axis.hpp>
#include <roundpipe/trace/timeline_boxes.hpp>
#include <roundpipe/trace/trace_file.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// One picture, drawn from top to bottom.
class SvgTimelineDrawing {
 public:
  /// \throws Error (invalid_argument) like \ref write_svg_timeline.
  SvgTimelineDrawing(Timeline const& timeline, SvgOptions const& options)
      : options_(options), devices_(timeline.devices) {
    require(options.width >= 400 && options.width <= 1e5 && options.row_height >= 4 &&
                options.row_height <= 1e3,
            Errc::invalid_argument,
            "a picture of a timeline needs a width of 400 to 100000 pixels and rows of 4 to 1000");
    require_known_devices(timeline);
    for (auto const& entry : timeline.entries) {
      offloads_ = offloads_ || carries_saves(entry.lane.kind);
      sends_ = sends_ || entry.lane.kind == LaneKind::peer;
    }
    for (auto const& lane : lanes()) {
      auto const name_width = text_width(row_name(lane), row_font_px(lane));
      left_px_ = std::max(left_px_, margin_px + name_width + gap_px);
    }
    auto const span = span_of(timeline, [&](Lane const& lane) { return has_row(lane); });
    from_s_ = options.from_s.value_or(span.start_s);
    to_s_ = options.to_s.value_or(span.end_s);
    require(from_s_ < to_s_ && std::isfinite(to_s_ - from_s_),
            Errc::invalid_argument,
            "a picture of a timeline needs actions to draw, or a given interval");
    boxes_ = boxes_of(timeline, from_s_, to_s_, unseen_s());
    for (auto const& [lane, boxes] : boxes_) {
      for (auto const& box : boxes) {
        if (is_compute(lane)) {
          turns_.try_emplace(turn_of(box), false);
        }
      }
    }
    bool is_dark = false;
    for (auto& [turn, dark] : turns_) {
      dark = is_dark = !is_dark;
    }
  }

  [[nodiscard]] std::string draw() {
    auto const right = options_.width - margin_px;
    y_px_ = margin_px;
    if (!title().empty()) {
      y_px_ = draw_title(canvas_, title(), margin_px, right, y_px_) + gap_px;
    }
    for (auto const& lane : lanes()) {
      draw_row(lane);
    }
    y_px_ = draw_axis(canvas_, to_s_ - from_s_, left_px_, left_px_ + plot_px(), y_px_ + gap_px);
    y_px_ = draw_legend(canvas_, legend(), left_px_, right, y_px_ + 2 * gap_px);
    return canvas_.picture(options_.width, y_px_ + margin_px, title());
  }

 private:
  using Turn = std::pair<std::size_t, RoundId>;  // a graph and, when rounds alternate, its round

  static constexpr double margin_px = 10;
  static constexpr double right_margin_px = 36;  // half of the last tick's label
  static constexpr double gap_px = 6;
  static constexpr double turn_px = 4;
  static constexpr double unseen_px = 0.5;  // shorter boxes and pauses merge with their neighbours
  static constexpr std::string_view hatch = "url(#hatch)";
  static constexpr std::string_view dark_turn = "#404040";
  static constexpr std::string_view light_turn = "#c8c8c8";

  [[nodiscard]] bool has_row(Lane const& lane) const {
    return is_compute(lane) || (options_.copy_lanes && lane.device.valid());
  }

  /// The lanes that have rows, from top to bottom.
  [[nodiscard]] std::vector<Lane> lanes() const {
    std::vector<Lane> result;
    for (std::size_t device = 0; device < devices_; ++device) {
      std::size_t const count = options_.copy_lanes ? device_lane_count : 1;
      for (std::size_t kind = 0; kind < count; ++kind) {
        Lane const lane{static_cast<LaneKind>(kind), DeviceId(device)};
        if ((offloads_ || !carries_saves(lane.kind)) && (sends_ || lane.kind != LaneKind::peer)) {
          result.push_back(lane);
        }
      }
    }
    return result;
  }

  [[nodiscard]] static bool is_compute(Lane const& lane) { return lane.kind == LaneKind::compute; }
  [[nodiscard]] static std::string row_name(Lane const& lane) {
    return is_compute(lane) ? "device " + std::to_string(lane.device.value()) : name_of(lane.kind);
  }
  [[nodiscard]] static double row_font_px(Lane const& lane) {
    return is_compute(lane) ? guide_font_px : 8;
  }

  [[nodiscard]] double plot_px() const { return options_.width - left_px_ - right_margin_px; }
  [[nodiscard]] double x_of(double s) const {
    return left_px_ + (s - from_s_) / (to_s_ - from_s_) * plot_px();
  }
  [[nodiscard]] double unseen_s() const { return (to_s_ - from_s_) / plot_px() * unseen_px; }

  [[nodiscard]] Turn turn_of(TimelineBox const& box) const {
    return {box.graph, options_.turns == SvgTurns::rounds ? box.round : RoundId::none()};
  }

  [[nodiscard]] std::string title() const {
    if (!options_.bubble_percent) {
      return options_.title;
    }
    return options_.title + (options_.title.empty() ? "" : ": ") +
           fixed_number(*options_.bubble_percent, 1) + " % bubbles";
  }

  void draw_row(Lane const& lane) {
    auto const height_px =
        is_compute(lane) ? options_.row_height : std::max(9.0, options_.row_height / 3);
    y_px_ += is_compute(lane) ? gap_px : 1;
    canvas_.text(left_px_ - gap_px,
                 y_px_ + height_px / 2,
                 row_name(lane),
                 {row_font_px(lane), "#000000", Anchor::end});
    auto const& boxes = boxes_[lane];
    if (is_compute(lane)) {
      for (auto const& idle : idle_between(boxes, from_s_, to_s_, unseen_s())) {
        draw_stretch(idle, height_px, hatch);
        draws_idle_ = true;
      }
    }
    for (auto const& box : boxes) {
      draw_box(box, height_px, is_compute(lane));
    }
    y_px_ += height_px;
    if (is_compute(lane) && options_.turns != SvgTurns::none) {
      draw_turns(boxes);
    }
  }

  void draw_stretch(Stretch const& stretch, double height_px, std::string_view fill) {
    auto const x = x_of(stretch.start_s);
    canvas_.rectangle(x, y_px_, x_of(stretch.end_s) - x, height_px, fill);
  }

  void draw_box(TimelineBox const& box, double height_px, bool is_labelled) {
    auto const look = look_of(box.kind);
    kinds_.insert(box.kind);
    auto const x = x_of(box.start_s);
    auto const width_px = x_of(box.end_s) - x;
    // A white line on the right separates a box from the next one, where there is room.
    auto const filled_px = width_px > 4 ? width_px - 0.8 : width_px;
    canvas_.rectangle(x, y_px_, filled_px, height_px, look.fill);
    if (is_labelled) {
      if (auto const label = fitting_label(box, options_.labels, filled_px, height_px)) {
        auto const middle_y = y_px_ + height_px / 2;
        canvas_.text(
            x + filled_px / 2, middle_y, label->text, {label->font_px, look.ink, Anchor::middle});
        draws_labels_ = true;
      }
    }
  }

  /// Draws one strip for all consecutive boxes of a turn.
  void draw_turns(std::vector<TimelineBox> const& boxes) {
    for (auto first = boxes.begin(); first != boxes.end();) {
      auto const turn = turn_of(*first);
      auto const next =
          std::find_if(first, boxes.end(), [&](auto const& box) { return turn_of(box) != turn; });
      draw_stretch({first->start_s, std::prev(next)->end_s},
                   turn_px,
                   turns_.at(turn) ? dark_turn : light_turn);
      first = next;
    }
    y_px_ += turn_px;
  }

  /// The legend for everything drawn: computing, idling, copying, turns, labels.
  [[nodiscard]] std::vector<LegendItem> legend() const {
    std::vector<LegendItem> items;
    for (bool const is_computing : {true, false}) {
      for (auto const kind : kinds_) {
        auto const look = look_of(kind);
        bool const is_new = std::ranges::find(items, look.name, &LegendItem::name) == items.end();
        if (is_new && is_computing == !look.letter.empty()) {
          items.push_back({look.fill, "", look.letter, look.ink, std::string(look.name)});
        }
      }
      if (is_computing && draws_idle_) {
        items.push_back({hatch, "", "", "", "bubble"});
      }
    }
    if (options_.turns != SvgTurns::none && !turns_.empty()) {
      auto const name = options_.turns == SvgTurns::calls ? "calls, by turns" : "rounds, by turns";
      items.push_back({dark_turn, light_turn, "", "", name});
    }
    if (draws_labels_) {
      items.push_back({"", "", "", "", meaning_of(options_.labels)});
    }
    return items;
  }

  SvgOptions const& options_;
  bool offloads_ = false;  ///< Whether saves have rows.
  bool sends_ = false;     // to other devices
  std::size_t devices_;
  double left_px_ = 0;  ///< Where the axis begins.
  double from_s_ = 0;
  double to_s_ = 0;
  std::map<Lane, std::vector<TimelineBox>> boxes_;
  std::map<Turn, bool> turns_;  ///< Of compute, and whether each is dark.
  SvgCanvas canvas_;
  double y_px_ = 0;             ///< Everything above is drawn.
  std::set<ActionKind> kinds_;  ///< The kinds that were drawn.
  bool draws_idle_ = false;
  bool draws_labels_ = false;
};

}  // namespace detail

/// Writes a picture of \p timeline to \p out. Each device has a row with its idle time hatched. A
/// box stands for the consecutive actions of a task (same graph, stage, round, micro-batch and
/// kind); its label shows as much of its layers and micro-batch as fits. A time axis counts from
/// its own beginning; a legend follows. Pauses and boxes shorter than half a pixel merge with their
/// neighbours. The picture is plain SVG 1.1 on white, without scripts, styles and fonts, so that
/// READMEs can show it.
/// \throws Error (invalid_argument) when an entry names a device that the timeline does not have,
/// for a width below 400 or rows lower than 4 pixels, and when the axis would be empty, as it is by
/// default without compute; (std::errc::io_error) when \p out fails.
inline void write_svg_timeline(std::ostream& out,
                               Timeline const& timeline,
                               SvgOptions const& options = {}) {
  out << detail::SvgTimelineDrawing(timeline, options).draw();
  detail::require_written(out);
}

/// Writes a picture of \p timeline to the file \p path and replaces an existing file.
/// \throws Error (with the system's code) when the file cannot be written, and like the function
/// above. An unfinished file is removed.
inline void save_svg_timeline(std::filesystem::path const& path,
                              Timeline const& timeline,
                              SvgOptions const& options = {}) {
  detail::write_trace_file(path,
                           [&](std::ostream& out) { write_svg_timeline(out, timeline, options); });
}

}  // namespace roundpipe
