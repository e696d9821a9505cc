// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Writes one snapshot: a folder that appears whole or not at all.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/agree.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/runtime/state/block_readers.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/content_hash.hpp>
#include <roundpipe/snapshots/hash_list.hpp>
#include <roundpipe/snapshots/snapshot_folders.hpp>
#include <roundpipe/snapshots/snapshot_manifest.hpp>
#include <roundpipe/snapshots/staged_writes.hpp>
#include <roundpipe/snapshots/stored_tensors.hpp>
#include <roundpipe/snapshots/tensor_files.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// Removes a folder unless it was given away.
class PartialFolder {
 public:
  explicit PartialFolder(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code code;
    if (!std::filesystem::create_directory(path_, code)) {
      throw file_error("create the folder", path_, code ? code.value() : EEXIST);
    }
  }
  PartialFolder(PartialFolder const&) = delete;
  PartialFolder& operator=(PartialFolder const&) = delete;
  ~PartialFolder() {
    std::error_code ignored;
    if (!published_) {
      std::filesystem::remove_all(path_, ignored);
    }
  }
  void publish(std::filesystem::path const& path) {
    publish_folder(path_, path);
    published_ = true;
  }

 private:
  std::filesystem::path path_;
  bool published_ = false;
};

/// Refuses ranks that do not save the same. \p digests: by rank.
/// \throws Error (invalid_argument) that names the first that differs from rank 0.
inline void require_same_snapshot(std::vector<std::string> const& digests) {
  auto const other = std::ranges::find_if(
      digests, [&](std::string const& digest) { return digest != digests.front(); });
  if (other != digests.end()) {
    throw Error(Errc::invalid_argument,
                "rank " + std::to_string(other - digests.begin()) +
                    " saves another step or other tensors than rank 0");
  }
}

/// Writes the manifest and the list of hashes of the snapshot in \p folder, whose other files are
/// there. \returns their bytes. \throws Error like \ref write_snapshot.
inline Bytes write_manifest(std::filesystem::path const& folder,
                            SnapshotManifest const& said,
                            HashList list,
                            bool in_parts) {
  using namespace snapshot_files;
  auto const text = snapshot_manifest_text(said);
  // What could not be read again, such as a program's too deep JSON, must show now.
  auto const bytes = std::as_bytes(std::span(text));
  (void)parse_snapshot_manifest(bytes, (folder / manifest).string());
  write_file(folder / manifest, text);
  list[std::string(manifest)] = in_parts ? hash_in_parts(bytes) : content_hash(bytes);
  auto const sums = hash_list_text(list);
  write_file(folder / (in_parts ? part_hashes : hashes), sums);
  return text.size() + sums.size();
}

}  // namespace detail

/// Writes a snapshot of \p state to \p folder, whose parent must be there, in place of a snapshot
/// that has this name: into "FOLDER.partial", each file synced, which then takes the name. After a
/// crash at any moment \p folder is what it was or the whole new snapshot. Reads the tensors of \p
/// state where they lie, and releases each block of \p hold, if there is one, when it was copied
/// into \p memory (its own without one), from where it is written: the trainer may wait for it.
/// Returns when all is on the disk.
///
/// With several ranks in \p group it is an operation of all of them, each with its own state, on
/// the channel \c snapshots; \p folder is one that all see. Each writes its parts, and of what all
/// have an equal part. Rank 0 makes the folder and gives it its name, and its \p extras are
/// written.
/// \returns the bytes of all files, or those that this rank has written.
/// \throws Error (invalid_argument) when two parameters get one name, and for text of \p extras
///         that is no UTF-8; (bad_file) for \p extras that nobody could read again, nested deeper
///         than 63 levels or larger than 64 MiB; with the system's code, and the file's name, when
///         writing fails. Then \p folder is what it was, and nothing else is left. The error of one
///         rank is that of all, see \ref agree; (invalid_argument) when their states do not belong
///         together.
inline Bytes write_snapshot(std::filesystem::path const& folder,
                            TrainingState const& state,
                            SnapshotExtras const& extras = {},
                            SnapshotFormat const& format = {},
                            BlockHold* hold = nullptr,
                            StagingMemory* memory = nullptr,
                            AnyProcessGroup group = {}) {
  auto const path = detail::partial_path(folder);
  bool const leads = group.rank() == 0;
  std::optional<StagingMemory> own;
  std::optional<TrainingState> share;
  std::optional<detail::PartialFolder> partial;
  std::optional<detail::TensorFiles> files;
  auto const all = [&](auto const& f) { return agree(group, GroupChannel::snapshots, f); };

  detail::require_same_snapshot(all([&] {
    if (memory == nullptr) {
      memory = &own.emplace();
    }
    share = detail::written_share(state, format, group.rank(), group.size());
    if (leads) {
      partial.emplace(path);
    }
    files.emplace(path, *share, format, group);
    if (leads) {
      files->create();
    }
    return files->digest();
  }));
  auto const written = all([&] {
    if (!leads) {
      files->open();
    }
    return files->write(hold, *memory);
  });
  auto const read = all([&] { return files->read_back(*memory); });
  SnapshotManifest said{state.position, {}, {}, extras};
  HashList list;
  files->describe(written, read, said, list);
  auto bytes = files->written();
  (void)all([&] {
    if (leads) {
      bytes += detail::write_manifest(path, said, std::move(list), group.size() > 1);
      partial->publish(folder);
    }
    return std::string();
  });
  return bytes;
}

}  // namespace roundpipe
