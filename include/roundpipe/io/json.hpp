// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief JSON of files, read strictly: no key twice, no deep nesting, no bytes that are no text.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/file_error.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe {

/// What a file of JSON may demand of its reader.
struct JsonLimits {
  Bytes bytes = 16_MiB;    ///< Of the text. A parsed text takes up to 20 times its bytes.
  std::size_t depth = 32;  ///< How many objects and arrays may lie in each other.
};

namespace detail {

/// Where and why nlohmann/json refuses a text: "parse error at line 1, column 3: ...".
[[nodiscard]] inline std::string json_fault(nlohmann::json::exception const& error) {
  std::string_view text = error.what();  // "[json.exception.parse_error.101] parse error at ..."
  if (auto const end = text.find("] "); end != std::string_view::npos) {
    text.remove_prefix(end + 2);
  }
  return printable(text.substr(0, 300));
}

/// \throws Error (bad_file) when \p text holds a NUL, at which nlohmann/json would stop reading, or
///         begins with a byte-order mark, which it would skip.
inline void require_json_text(std::string_view text,
                              std::string const& file,
                              std::string const& field) {
  if (auto const at = text.find('\0'); at != std::string_view::npos) {
    throw bad_file(file, field, "is no JSON: byte " + std::to_string(at) + " is 0");
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    throw bad_file(file, field, "is no JSON: it begins with a byte-order mark");
  }
}

[[nodiscard]] inline std::string_view text_of(HostSpan<std::byte const> bytes) noexcept {
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

}  // namespace detail

/// Parses \p text, the content of \p file.
/// \throws Error (bad_file) when \p text is no JSON (RFC 8259, in UTF-8), when an object has a key
///         twice, or when a limit is passed; the message names \p file and the place.
[[nodiscard]] inline nlohmann::json parse_json(HostSpan<std::byte const> text,
                                               std::string const& file,
                                               JsonLimits const& limits = {}) {
  if (text.size() > limits.bytes) {
    throw bad_file(
        file,
        "the text",
        "has " + std::to_string(text.size()) + " bytes, more than " + std::to_string(limits.bytes));
  }
  auto const view = detail::text_of(text);
  detail::require_json_text(view, file, "the text");
  std::size_t depth = 0;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  auto const watch = [&](int, nlohmann::json::parse_event_t event, auto const& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (++depth > limits.depth) {
        throw bad_file(
            file, "the text", "nests deeper than " + std::to_string(limits.depth) + " levels");
      }
      if (event == Event::object_start) {
        keys.emplace_back();
      }
    } else if (event == Event::object_end || event == Event::array_end) {
      --depth;
      if (event == Event::object_end) {
        keys.pop_back();
      }
    } else if (event == Event::key) {
      auto const& key = value.template get_ref<std::string const&>();
      if (!keys.back().insert(key).second) {
        throw bad_file(file, "key " + in_quotes(key), "stands twice in its object");
      }
    }
    return true;
  };
  try {
    return nlohmann::json::parse(view.begin(), view.end(), watch);
  } catch (nlohmann::json::exception const& error) {
    throw bad_file(file, "the text", "is no JSON: " + detail::json_fault(error));
  }
}

/// Reads and parses the file \p path. \throws Error like \ref File::open and \ref parse_json.
[[nodiscard]] inline nlohmann::json read_json(std::filesystem::path const& path,
                                              JsonLimits const& limits = {}) {
  return parse_json(read_file(path, limits.bytes), path.string(), limits);
}

/// \p value, of nlohmann/json's types, as text: on one line, or with \p indent spaces a level.
/// \throws Error (invalid_argument) when a string is no UTF-8.
template <class Json>
[[nodiscard]] std::string json_text(Json const& value, int indent = -1) {
  try {
    return value.dump(indent);
  } catch (nlohmann::json::exception const& error) {
    throw Error(Errc::invalid_argument, "JSON cannot hold a string: " + detail::json_fault(error));
  }
}

}  // namespace roundpipe
