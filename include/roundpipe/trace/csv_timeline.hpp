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

/// \p text as a field. A text with separators of fields or lines is quoted, and its own quotes are
/// doubled (RFC 4180, section 2, rules 5 to 7).
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

/// The shortest digits that parse back to \p value, in any locale.
[[nodiscard]] inline std::string csv_number(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

}  // namespace detail

/// Writes a header and one line for each entry of \p timeline, in its order. Lines end in CR LF, as
/// RFC 4180 requires. Missing values are empty fields (for example the device of host lanes). For a
/// parameter or gradient chunk, micro_batch is the window. Times are seconds and parse back
/// exactly.
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

/// Writes \p timeline to the file \p path and replaces an existing file.
/// \throws Error (with the system's code) when the file cannot be written, and like the function
/// above. An unfinished file is removed.
inline void save_csv_timeline(std::filesystem::path const& path, Timeline const& timeline) {
  detail::write_trace_file(path, [&](std::ostream& out) { write_csv_timeline(out, timeline); });
}

}  // namespace roundpipe
