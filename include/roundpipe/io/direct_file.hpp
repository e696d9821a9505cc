// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads and writes a file past the system's cache, where the file system can.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file.hpp>

#include <cstddef>

namespace roundpipe {

/// \brief A second way to a file: whole pages go between memory and the disk without a copy in the
/// system's cache (`O_DIRECT`).
///
/// That takes neither the memory nor the processor's time that pages of the cache take. The rest
/// goes through the cache: what shares a page with other bytes, what lies in memory otherwise than
/// in the file, and everything where the file system knows no other way. Any number of threads may
/// read and write at once, each elsewhere. Errors are those of \ref File.
class DirectFile {
 public:
  /// What memory and offset must be multiples of to go past the cache.
  static constexpr Bytes page_bytes = 4096;

  /// \p file must outlive this.
  explicit DirectFile(File const& file);
  DirectFile(DirectFile const&) = delete;
  DirectFile& operator=(DirectFile const&) = delete;
  ~DirectFile();

  [[nodiscard]] File const& file() const noexcept { return file_; }

  /// Writes \p from at \p offset. For the whole pages among them to go past the cache, the address
  /// of \p from must be \p offset but for a multiple of \ref page_bytes.
  void write_at(Bytes offset, HostSpan<std::byte const> from) const;

  /// Fills \p to with the bytes from \p offset on. Whole pages come past the cache where \p offset
  /// and the address of \p to are multiples of \ref page_bytes.
  /// \throws Error (std::errc::io_error) when the file ends before.
  void read_at(Bytes offset, HostBytes to) const;

 private:
  File const& file_;
  int descriptor_ = -1;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/direct_file.ipp>
#endif
