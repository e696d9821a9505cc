// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief An open file that several threads may read and write at offsets.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// Owns the descriptor of a regular file. Movable; a moved-from file is closed. All errors carry
/// the system's code, and their messages name the file. Offsets are in bytes.
class File {
 public:
  File() noexcept = default;
  File(File&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept;
  File(File const&) = delete;
  File& operator=(File const&) = delete;
  ~File();

  /// Opens \p path for reading.
  /// \throws Error when that fails, or (std::errc::invalid_argument, or is_a_directory) when it is
  ///         no regular file.
  [[nodiscard]] static File open(std::filesystem::path const& path);

  /// Creates \p path for writing and reading.
  /// \throws Error (std::errc::file_exists) when there is such a file, and when creating it fails.
  [[nodiscard]] static File create(std::filesystem::path const& path);

  /// Opens \p path, which is there, for writing and reading. \throws Error when that fails.
  [[nodiscard]] static File open_to_write(std::filesystem::path const& path);

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] Bytes size() const;

  /// Fills \p to with the bytes from \p offset on. Any number of threads may read at once.
  /// \throws Error (std::errc::io_error) when the file ends before.
  void read_at(Bytes offset, HostBytes to) const;

  /// Writes \p from at \p offset. Any number of threads may write at once, each elsewhere.
  void write_at(Bytes offset, HostSpan<std::byte const> from) const;

  /// Gives a new file its size, and reserves that room where the file system can, so that a full
  /// disk shows here and not in the middle of writing.
  void reserve(Bytes size) const;

  /// Returns once all that was written would survive a loss of power.
  void sync() const;

  /// Closes the file. Some file systems say only now that writing failed.
  void close();

 private:
  File(std::filesystem::path path, int descriptor) noexcept
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// All bytes of the file \p path.
/// \throws Error like \ref File, and (bad_file) when the file has more than \p most_bytes.
[[nodiscard]] std::vector<std::byte> read_file(std::filesystem::path const& path, Bytes most_bytes);

/// Returns once the entries of the folder \p path (which files it names) would survive a loss of
/// power. \throws Error with the system's code.
void sync_folder(std::filesystem::path const& path);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/file.ipp>
#endif
