// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The folder of a training's snapshots: their names, the newest, and what is removed.

#include <roundpipe/config.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace roundpipe {

/// A snapshot in its training's folder: "step-000000100". A folder has this name only while all of
/// the snapshot is there.
struct SnapshotPlace {
  std::uint64_t step = 0;
  std::filesystem::path path;
};

/// Where the snapshot of step \p step belongs in \p folder.
[[nodiscard]] std::filesystem::path snapshot_path(std::filesystem::path const& folder,
                                                  std::uint64_t step);

/// The complete snapshots in \p folder, by step. Other files may lie there, too. None when there is
/// no such folder.
/// \throws Error with the system's code when the folder cannot be read.
[[nodiscard]] std::vector<SnapshotPlace> list_snapshots(std::filesystem::path const& folder);

/// The complete snapshot of the latest step in \p folder, or none.
/// \throws Error like \ref list_snapshots.
[[nodiscard]] std::optional<std::filesystem::path> newest_snapshot(
    std::filesystem::path const& folder);

/// Removes the oldest snapshots in \p folder but for the last \p keep, at least one. Each first
/// loses its name, so that whoever looks later never finds a part of one.
/// \throws Error with the system's code.
void remove_old_snapshots(std::filesystem::path const& folder, std::size_t keep);

/// Removes what writers left in \p folder that were killed. No writer may be at work there.
/// \throws Error with the system's code.
void remove_partial_snapshots(std::filesystem::path const& folder);

namespace detail {

/// What the folder is called while it is being written.
[[nodiscard]] std::filesystem::path partial_path(std::filesystem::path const& snapshot);

/// Removes the folder \p path and all that is in it, if it is there. \throws Error.
void remove_folder(std::filesystem::path const& path);

/// Gives the finished folder \p partial the name \p path, in place of a folder that has it, and
/// returns when that will survive a loss of power.
/// \throws Error with the system's code; then \p path is what it was, unless syncing the folder
///         above is what failed.
void publish_folder(std::filesystem::path const& partial, std::filesystem::path const& path);

}  // namespace detail

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/snapshots/impl/snapshot_folders.ipp>
#endif
