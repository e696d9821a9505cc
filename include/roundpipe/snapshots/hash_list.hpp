// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The files of a snapshot by name, and the list of their hashes.

#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/json.hpp>
#include <roundpipe/snapshots/content_hash.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace roundpipe {

/// The files of a snapshot.
namespace snapshot_files {
inline constexpr std::string_view manifest = "snapshot.json";  ///< See \ref SnapshotManifest.
inline constexpr std::string_view weights = "model.safetensors";
inline constexpr std::string_view optimizer = "optimizer.safetensors";
inline constexpr std::string_view visible = "visible.safetensors";  ///< Where staleness needs it.
inline constexpr std::string_view hashes = "XXH128SUMS";            ///< Of all files but itself.
/// The same, but hashes in parts (\ref hash_part_bytes): what several ranks write in its place.
inline constexpr std::string_view part_hashes = "XXH128PARTS";
}  // namespace snapshot_files

/// The hash of each file, by name.
using HashList = std::map<std::string, std::string, std::less<>>;

/// \p hashes as `xxh128sum` writes them, and reads them with `--check`.
[[nodiscard]] inline std::string hash_list_text(HashList const& hashes) {
  std::string text;
  for (auto const& [file, hash] : hashes) {
    text += hash + "  " + file + '\n';
  }
  return text;
}

/// Parses \p text, the content of the list \p file.
/// \throws Error (bad_file) for a line that is not the hash of a snapshot's file, for a file that
///         stands there twice, and when a file is missing that each snapshot has.
[[nodiscard]] inline HashList parse_hash_list(HostSpan<std::byte const> text,
                                              std::string const& file) {
  using namespace snapshot_files;
  HashList list;
  auto rest = detail::text_of(text);
  for (std::size_t number = 1; !rest.empty(); ++number) {
    auto const end = rest.find('\n');
    auto const line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    auto const where = "line " + std::to_string(number);
    auto const name = line.size() > 34 ? line.substr(34) : std::string_view();
    std::array const known{manifest, weights, optimizer, visible};
    if (end == std::string_view::npos || !is_content_hash(line.substr(0, 32)) ||
        line.substr(32, 2) != "  " || std::ranges::find(known, name) == known.end()) {
      throw bad_file(
          file, where, "is " + in_quotes(line) + ", not the hash of a file of a snapshot");
    }
    if (!list.emplace(name, line.substr(0, 32)).second) {
      throw bad_file(file, where, "names " + in_quotes(name) + " a second time");
    }
  }
  for (auto const name : {manifest, weights, optimizer}) {
    if (!list.contains(name)) {
      throw bad_file(file, "the list", "has no hash of " + in_quotes(name));
    }
  }
  return list;
}

}  // namespace roundpipe
