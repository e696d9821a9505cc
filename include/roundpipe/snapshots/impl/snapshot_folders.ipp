// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/snapshots/snapshot_folders.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#ifdef __linux__
#  include <fcntl.h>
#endif

namespace roundpipe {

namespace detail {

inline constexpr std::string_view snapshot_prefix = "step-";
inline constexpr std::string_view partial_suffix = ".partial";

/// The step of a snapshot's folder, from its name; none for all other names.
ROUNDPIPE_INLINE std::optional<std::uint64_t> step_of(std::string_view name) {
  if (!name.starts_with(snapshot_prefix)) {
    return std::nullopt;
  }
  name.remove_prefix(snapshot_prefix.size());
  std::uint64_t step = 0;
  auto const [end, code] = std::from_chars(name.data(), name.data() + name.size(), step);
  return code == std::errc() && end == name.data() + name.size() ? std::optional(step)
                                                                 : std::nullopt;
}

/// Calls `f(entry)` for each entry of \p folder. \throws Error.
template <class F>
void for_each_entry(std::filesystem::path const& folder, F&& f) {
  std::error_code code;
  std::filesystem::directory_iterator entry(folder, code);
  for (; !code && entry != std::filesystem::directory_iterator(); entry.increment(code)) {
    f(*entry);
  }
  if (code) {
    throw file_error("read the folder", folder, code.value());
  }
}

ROUNDPIPE_INLINE std::filesystem::path partial_path(std::filesystem::path const& snapshot) {
  return snapshot.string() + std::string(partial_suffix);
}

ROUNDPIPE_INLINE void remove_folder(std::filesystem::path const& path) {
  std::error_code code;
  std::filesystem::remove_all(path, code);
  if (code) {
    throw file_error("remove the folder", path, code.value());
  }
}

ROUNDPIPE_INLINE void publish_folder(std::filesystem::path const& partial,
                                     std::filesystem::path const& path) {
  int error = std::rename(partial.c_str(), path.c_str()) == 0 ? 0 : errno;
  bool exchanged = false;
#if defined(__linux__) && defined(RENAME_EXCHANGE)
  if (error == ENOTEMPTY || error == EEXIST) {
    error = ::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0
                ? 0
                : errno;
    exchanged = error == 0;
  }
#endif
  if (error != 0) {
    throw file_error("rename a finished snapshot to", path, error);
  }
  sync_folder(path.parent_path());
  if (exchanged) {
    remove_folder(partial);  // what had the name before
  }
}

}  // namespace detail

ROUNDPIPE_INLINE std::filesystem::path snapshot_path(std::filesystem::path const& folder,
                                                     std::uint64_t step) {
  auto const number = std::to_string(step);
  std::string const zeros(9 - std::min<std::size_t>(9, number.size()), '0');
  return folder / (std::string(detail::snapshot_prefix) + zeros + number);
}

ROUNDPIPE_INLINE std::vector<SnapshotPlace> list_snapshots(std::filesystem::path const& folder) {
  std::error_code code;
  if (!std::filesystem::exists(folder, code) && !code) {
    return {};
  }
  std::vector<SnapshotPlace> places;
  detail::for_each_entry(folder, [&](std::filesystem::directory_entry const& entry) {
    auto const step = detail::step_of(entry.path().filename().string());
    std::error_code ignored;  // what cannot be looked at is no folder
    if (step && entry.is_directory(ignored)) {
      places.push_back({*step, entry.path()});
    }
  });
  std::ranges::sort(places, {}, &SnapshotPlace::step);
  return places;
}

ROUNDPIPE_INLINE std::optional<std::filesystem::path> newest_snapshot(
    std::filesystem::path const& folder) {
  auto const places = list_snapshots(folder);
  return places.empty() ? std::nullopt : std::optional(places.back().path);
}

ROUNDPIPE_INLINE void remove_old_snapshots(std::filesystem::path const& folder, std::size_t keep) {
  auto const places = list_snapshots(folder);
  auto const kept = std::max<std::size_t>(keep, 1);
  for (std::size_t i = 0; i + kept < places.size(); ++i) {
    auto const& path = places[i].path;
    auto const removed = detail::partial_path(path);
    if (std::rename(path.c_str(), removed.c_str()) != 0) {
      throw file_error("remove the folder", path, errno);
    }
    detail::remove_folder(removed);
  }
}

ROUNDPIPE_INLINE void remove_partial_snapshots(std::filesystem::path const& folder) {
  std::vector<std::filesystem::path> partial;
  detail::for_each_entry(folder, [&](std::filesystem::directory_entry const& entry) {
    std::string const file = entry.path().filename().string();
    std::string_view name = file;
    if (name.ends_with(detail::partial_suffix)) {
      name.remove_suffix(detail::partial_suffix.size());
      if (detail::step_of(name)) {
        partial.push_back(entry.path());
      }
    }
  });
  for (auto const& path : partial) {
    detail::remove_folder(path);
  }
}

}  // namespace roundpipe
