// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/io/file_error.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <source_location>
#include <string>
#include <string_view>
#include <system_error>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::string printable(std::string_view text) {
  std::string result(text);
  std::replace_if(
      result.begin(), result.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return result;
}

}  // namespace detail

ROUNDPIPE_INLINE std::string in_quotes(std::string_view text) {
  constexpr std::size_t most_bytes = 120;
  auto const continues = [&](std::size_t at) {  // a character that began before
    return (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
  };
  auto end = std::min(text.size(), most_bytes);
  while (end < text.size() && end > 0 && continues(end)) {
    --end;
  }
  return "'" + detail::printable(text.substr(0, end)) + (end < text.size() ? "...'" : "'");
}

ROUNDPIPE_INLINE std::string path_in_quotes(std::filesystem::path const& path) {
  return "'" + detail::printable(path.string()) + "'";
}

ROUNDPIPE_INLINE Error file_error(std::string const& action,
                                  std::filesystem::path const& file,
                                  int number,
                                  std::source_location where) {
  return {std::error_code(number, std::generic_category()),
          "cannot " + action + " " + path_in_quotes(file),
          where};
}

ROUNDPIPE_INLINE Error bad_file(std::string const& file,
                                std::string const& field,
                                std::string const& fault,
                                std::source_location where) {
  return {Errc::bad_file, path_in_quotes(file) + ": " + field + " " + fault, where};
}

}  // namespace roundpipe
