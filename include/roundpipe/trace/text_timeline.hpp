// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Draws a timeline as text: a row for each lane, a column for each interval.

#include <roundpipe/graph/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <ostream>
#include <string>

namespace roundpipe {

/// The options of \ref write_text_timeline.
struct TextTimelineOptions {
  double from_s = 0;
  double to_s = 1;
  std::size_t columns = 100;
  /// The character of an entry. 0: the entry is not drawn, and does not make its lane appear.
  std::function<char(TimelineEntry const&)> character;
};

/// Writes a line for each lane of \p timeline that draws something: its name, and in each column
/// the entry that takes most of the column's time, or a dot where the lane is mostly idle.
inline void write_text_timeline(std::ostream& out,
                                Timeline const& timeline,
                                TextTimelineOptions const& options) {
  std::map<Lane, std::map<std::size_t, std::map<char, double>>> cells;  // seconds, by lane and
                                                                        // column
  auto const column_s = (options.to_s - options.from_s) / static_cast<double>(options.columns);
  for (auto const& entry : timeline) {
    auto const character = options.character(entry);
    if (character == 0 || entry.end_s <= options.from_s || entry.start_s >= options.to_s) {
      continue;
    }
    auto& row = cells[entry.lane];
    for (std::size_t column = 0; column < options.columns; ++column) {
      auto const begin_s = options.from_s + static_cast<double>(column) * column_s;
      auto const overlap_s =
          std::min(entry.end_s, begin_s + column_s) - std::max(entry.start_s, begin_s);
      if (overlap_s > 0) {
        row[column][character] += overlap_s;
      }
    }
  }
  auto const name_of_lane = [](Lane const& lane) {
    std::string name = name_of(lane.kind);
    return lane.device.valid() ? "device " + std::to_string(lane.device.value()) + " " + name
                               : name;
  };
  std::size_t width = 20;
  for (auto const& [lane, row] : cells) {
    width = std::max(width, name_of_lane(lane).size() + 1);
  }
  for (auto const& [lane, row] : cells) {
    auto name = name_of_lane(lane);
    name.resize(width, ' ');
    out << name;
    for (std::size_t column = 0; column < options.columns; ++column) {
      char drawn = '.';
      double most_s = column_s / 2;
      if (auto const cell = row.find(column); cell != row.end()) {
        for (auto const& [character, seconds] : cell->second) {
          if (seconds >= most_s) {
            drawn = character;
            most_s = seconds;
          }
        }
      }
      out << drawn;
    }
    out << '\n';
  }
}

}  // namespace roundpipe
