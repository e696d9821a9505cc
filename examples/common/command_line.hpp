// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The handling of command lines that all programs share: parsing, refusals, exit status.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>

#include <CLI/CLI.hpp>

#include <cstddef>
#include <string>

namespace examples {

/// \throws roundpipe::Error (invalid_argument) with \p message.
[[noreturn]] inline void refuse(std::string const& message) {
  throw roundpipe::Error(roundpipe::Errc::invalid_argument, message);
}

/// Parses the command line. \returns whether the program should continue: false after it has
/// printed the help that the user asked for. \throws roundpipe::Error (invalid_argument) for a line
/// that \p app refuses.
[[nodiscard]] inline bool parse(CLI::App& app, int argc, char const* const* argv) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (CLI::CallForHelp const& help) {
    static_cast<void>(app.exit(help));
    return false;
  } catch (CLI::ParseError const& error) {
    refuse(std::string(error.what()) + " (--help lists all options)");
  }
}

/// Parses \p text, the value of \p option, as a number of bytes. \throws roundpipe::Error
/// (invalid_argument) that names the option.
[[nodiscard]] inline roundpipe::Bytes bytes_of(std::string const& option, std::string const& text) {
  try {
    return roundpipe::parse_bytes(text);
  } catch (roundpipe::Error const& error) {
    refuse(option + ": " + error.message());
  }
}

/// A budget of \p option: a size, or "unlimited", which is 0.
/// \throws roundpipe::Error (invalid_argument) for anything else, and for 0.
[[nodiscard]] inline roundpipe::Bytes budget_of(std::string const& option,
                                                std::string const& text) {
  if (text == "unlimited") {
    return 0;
  }
  auto const bytes = bytes_of(option, text);
  if (bytes == 0) {
    refuse(option + " must not be 0");
  }
  return bytes;
}

/// Breaks \p text into lines that fit beside the options' names.
[[nodiscard]] inline std::string wrapped(std::string text) {
  constexpr std::size_t width = 68;
  for (std::size_t begin = 0; text.size() - begin > width;) {
    auto const space = text.rfind(' ', begin + width);
    text[space] = '\n';
    begin = space + 1;
  }
  return text;
}

}  // namespace examples
