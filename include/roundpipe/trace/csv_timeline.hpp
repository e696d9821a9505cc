// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Writes a timeline as a table of comma-separated values (RFC 4180).

#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/trace/trace_file.hpp>

#include <charconv>
#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>

namespace roundpipe {

namespace detail {

/// \p text as a field: in quotes, and its own quotes doubled, where it holds what separates fields
/// or lines (RFC 4180, section 2, rules 5 to 7).
[[nodiscard]] inline std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string field = "\"";
  for (char const c : text) {
    field.append(c == '"' ? 2 : 1, c);
  }
  return field + '"';
}

/// The shortest digits that are read back as \p value, whatever the locale.
[[nodiscard]] inline std::string csv_number(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

}  // namespace detail

/// Writes a header and a line an entry of \p timeline, in its order; lines end in CR LF, as RFC
/// 4180 has it. What an entry has not is an empty field (the device, of the host's lanes). Of a
/// parameter or gradient chunk, micro_batch is the window. Times are seconds and are read back as
/// they were.
/// \throws Error (std::errc::io_error) when \p out fails.
inline void write_csv_timeline(std::ostream& out, Timeline const& timeline) {
  out << "call,kind,lane,device,slot,stage,round,micro_batch,layer,block,bytes,start_s,end_s\r\n";
  for (auto const& entry : timeline) {
    std::string line = std::to_string(entry.graph);
    auto const add = [&](std::string const& field) { line += ',' + field; };
    auto const add_id = [&](auto id) {
      add(id.valid() ? std::to_string(id.value()) : std::string());
    };
    add(detail::csv_field(name_of(entry.kind)));
    add(detail::csv_field(name_of(entry.lane.kind)));
    add_id(entry.lane.device);
    add_id(entry.slot);
    add_id(entry.stage);
    add_id(entry.round);
    add_id(entry.micro_batch);
    add_id(entry.layer);
    add_id(entry.block);
    add(std::to_string(entry.bytes));
    add(detail::csv_number(entry.start_s));
    add(detail::csv_number(entry.end_s));
    out << line << "\r\n";
  }
  detail::require_written(out);
}

/// Writes \p timeline to the file \p path, replacing it.
/// \throws Error (with the system's code) when the file can not be written, and as above. A file
///         that could not be finished is removed.
inline void save_csv_timeline(std::filesystem::path const& path, Timeline const& timeline) {
  detail::write_trace_file(path, [&](std::ostream& out) { write_csv_timeline(out, timeline); });
}

}  // namespace roundpipe
