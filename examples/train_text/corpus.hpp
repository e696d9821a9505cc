// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The text: its files, its bytes, and its held-out part.

#include <roundpipe/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace train_text {

/// Bytes first to end - 1 of the text.
struct TextRange {
  std::size_t first = 0;
  std::size_t end = 0;

  [[nodiscard]] std::size_t size() const noexcept { return end - first; }
};

/// The ranges of a text for training and the held-out ranges for validation; together they are the
/// whole text.
struct TextSplit {
  std::vector<TextRange> training;
  std::vector<TextRange> validation;
};

/// Cuts a text of \p size bytes into stretches of equal length, of about 40 KiB (or more, if ten
/// windows are longer), and holds out the last tenth of each, but at least one window. A window
/// lies within one range, so no training window touches held-out text. Every range holds at least
/// one window.
/// \throws roundpipe::Error (invalid_argument) if the text is shorter than two windows.
[[nodiscard]] inline TextSplit split_text(std::size_t size, std::size_t window) {
  if (size / 2 < window) {
    throw roundpipe::Error(roundpipe::Errc::invalid_argument,
                           "the text has " + std::to_string(size) +
                               " bytes, too few for the context: at least " +
                               std::to_string(2 * window) +
                               " are needed, for one sequence to train on and one to validate on");
  }
  constexpr std::size_t stretch = std::size_t{40} << 10;
  auto const count = std::max<std::size_t>(1, size / std::max(stretch, 10 * window));
  TextSplit split;
  for (std::size_t i = 0; i < count; ++i) {
    auto const first = size * i / count;
    auto const end = size * (i + 1) / count;
    auto const cut = end - std::max(window, (end - first) / 10);
    split.training.push_back({first, cut});
    split.validation.push_back({cut, end});
  }
  return split;
}

namespace detail {

namespace fs = std::filesystem;

[[nodiscard]] inline std::string read_file(fs::path const& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    throw roundpipe::Error(std::make_error_code(std::errc::io_error),
                           "cannot read '" + path.string() + "'");
  }
  return bytes;
}

[[nodiscard]] inline bool is_hidden(fs::path const& path) {
  return path.filename().string().starts_with('.');
}

/// All regular files below \p folder whose path is not hidden, sorted.
[[nodiscard]] inline std::vector<fs::path> files_below(fs::path const& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  fs::recursive_directory_iterator entry(folder, code);
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    if (is_hidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (std::error_code ignored; entry->is_regular_file(ignored)) {
      files.push_back(entry->path());
    }
  }
  if (code) {
    throw roundpipe::Error(code, "cannot read folder '" + folder.string() + "'");
  }
  std::sort(files.begin(), files.end(), [](auto const& a, auto const& b) {
    return a.generic_string() < b.generic_string();
  });
  return files;
}

}  // namespace detail

/// The bytes of all files, one after another.
struct Corpus {
  std::string text;
  std::size_t files = 0;

  [[nodiscard]] std::string_view view(TextRange range) const {
    return std::string_view(text).substr(range.first, range.size());
  }

  /// Appends the file \p path, or the text files below the folder \p path: files that are not empty
  /// and have no zero byte among the first 8192. Leaves out hidden files and folders.
  /// \throws roundpipe::Error for missing, unreadable or empty files.
  void add(std::filesystem::path const& path) {
    std::error_code code;
    bool const is_folder = std::filesystem::is_directory(path, code);
    if (!std::filesystem::exists(path, code)) {
      throw roundpipe::Error(
          code ? code : std::make_error_code(std::errc::no_such_file_or_directory),
          "cannot read '" + path.string() + "'");
    }
    if (!is_folder) {
      auto const bytes = detail::read_file(path);
      refuse_if_empty(bytes.size(), "file '" + path.string() + "' is empty");
      append(bytes);
      return;
    }
    auto const before = files;
    for (auto const& file : detail::files_below(path)) {
      auto const bytes = detail::read_file(file);
      if (!bytes.empty() && bytes.substr(0, 8192).find('\0') == std::string::npos) {
        append(bytes);
      }
    }
    refuse_if_empty(files - before, "folder '" + path.string() + "' holds no text files");
  }

  /// Appends roundpipe's own sources and docs, from the source tree \p root.
  /// \throws roundpipe::Error if there are none.
  void add_project(std::filesystem::path const& root) {
    std::string_view const kinds[] = {".hpp", ".cuh", ".cpp", ".cu", ".md", ".cmake", ".txt"};
    auto const before = files;
    for (auto const* folder : {"include", "examples", "tests", "bench", "docs", "cmake"}) {
      if (std::error_code ignored; !std::filesystem::is_directory(root / folder, ignored)) {
        continue;
      }
      for (auto const& file : detail::files_below(root / folder)) {
        auto const kind = file.extension().string();
        if (std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds)) {
          append(detail::read_file(file));
        }
      }
    }
    if (std::error_code ignored; std::filesystem::exists(root / "README.md", ignored)) {
      append(detail::read_file(root / "README.md"));
    }
    refuse_if_empty(files - before,
                    "the project's sources, the default text, have moved since this program was "
                    "built; name files or folders with --data");
  }

 private:
  void append(std::string const& bytes) {
    text += bytes;
    ++files;
  }
  static void refuse_if_empty(std::size_t count, std::string const& message) {
    if (count == 0) {
      throw roundpipe::Error(roundpipe::Errc::invalid_argument, message);
    }
  }
};

}  // namespace train_text
