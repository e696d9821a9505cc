// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A new file that takes its name only when all of it is on the disk.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file.hpp>

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace roundpipe {

/// Writes beside \p path, to "PATH.0.partial" or another number, and renames that. Whoever opens
/// \p path finds what was there before or the whole new file, also after a crash.
class AtomicFile {
 public:
  /// Creates the file beside \p path. \throws Error like \ref File::create.
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(AtomicFile const&) = delete;
  AtomicFile& operator=(AtomicFile const&) = delete;
  /// Removes the file unless it was committed.
  ~AtomicFile();

  /// Where to write. Closed once committed.
  [[nodiscard]] File const& file() const noexcept { return file_; }
  /// The name that the file will have.
  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }

  /// Syncs the file, gives it its name, in place of what had the name before, and syncs the folder.
  /// \throws Error with the system's code; what had the name before then stays, unless syncing the
  ///         folder is what failed.
  void commit();

 private:
  std::filesystem::path path_;
  File file_;
};

/// Makes \p content the content of the file \p path, at once and whole.
/// \throws Error like \ref AtomicFile and \ref File.
void write_file(std::filesystem::path const& path, std::string_view content);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/atomic_file.ipp>
#endif
