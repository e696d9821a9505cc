// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A file as read-only memory.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file.hpp>

#include <cstddef>
#include <filesystem>
#include <utility>

namespace roundpipe {

/// Maps a whole file, and keeps it open. Movable: the address of \ref bytes stays; a moved-from one
/// is empty.
///
/// Whoever reads \ref bytes gets a signal (SIGBUS) when the disk fails or the file has shrunk;
/// \ref file() reads the same bytes and throws instead. Pages that were read count as resident
/// memory of the process until the system, or \ref drop, takes them back.
class MappedFile {
 public:
  MappedFile() noexcept = default;
  /// \throws Error like \ref File::open, and when the system maps no more.
  explicit MappedFile(std::filesystem::path const& path);
  MappedFile(MappedFile&& other) noexcept
      : file_(std::move(other.file_)), bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(MappedFile const&) = delete;
  MappedFile& operator=(MappedFile const&) = delete;
  ~MappedFile();

  [[nodiscard]] File const& file() const noexcept { return file_; }
  /// All bytes of the file as long as this lives. They begin at a page.
  [[nodiscard]] HostSpan<std::byte const> bytes() const noexcept { return bytes_; }

  /// Says that \ref bytes will be read from the beginning to the end. Only advice.
  void expect_sequential_reads() const noexcept;
  /// Says that \p part of \ref bytes will be read soon. Only advice.
  void expect_reads(HostSpan<std::byte const> part) const noexcept;
  /// Lets go of the whole pages in \p part of \ref bytes: they no longer count as resident, and the
  /// next read fetches them again, from the system's cache or the disk.
  void drop(HostSpan<std::byte const> part) const noexcept;

 private:
  void advise(HostSpan<std::byte const> part, int advice, bool whole_pages) const noexcept;

  File file_;
  HostSpan<std::byte const> bytes_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/mapped_file.ipp>
#endif
