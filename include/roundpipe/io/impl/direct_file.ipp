// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/direct_file.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/file_error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <unistd.h>

namespace roundpipe {

namespace detail {

/// Moves whole pages by `move(position, bytes left)` until all \p size bytes are moved, or the
/// system does not take the rest in this way. \returns the bytes moved. \throws Error.
template <class Move>
[[nodiscard]] Bytes move_directly(Bytes size, File const& file, char const* action, Move&& move) {
  Bytes moved = 0;
  while (moved < size && moved % DirectFile::page_bytes == 0) {
    auto const now = move(moved, size - moved);
    if (now < 0 && errno != EINTR && errno != EINVAL) {
      throw file_error(action, file.path(), errno);
    }
    if (now == 0 || (now < 0 && errno == EINVAL)) {
      break;
    }
    moved += now > 0 ? static_cast<Bytes>(now) : 0;
  }
  return moved;
}

}  // namespace detail

ROUNDPIPE_INLINE DirectFile::DirectFile(File const& file) : file_(file) {
#ifdef O_DIRECT
  int const mode = ::fcntl(file.descriptor(), F_GETFL) & O_ACCMODE;
  descriptor_ = ::open(file.path().c_str(), mode | O_DIRECT | O_CLOEXEC);
#endif
}

ROUNDPIPE_INLINE DirectFile::~DirectFile() {
  if (descriptor_ >= 0) {
    (void)::close(descriptor_);
  }
}

ROUNDPIPE_INLINE void DirectFile::write_at(Bytes offset, HostSpan<std::byte const> from) const {
  auto const end = offset + from.size();
  auto const begin = align_up(offset, page_bytes);
  auto const direct_end = end - end % page_bytes;
  auto const address = reinterpret_cast<std::uintptr_t>(from.data());
  Bytes done = 0;  // of the whole pages
  if (descriptor_ >= 0 && begin < direct_end && (address - offset) % page_bytes == 0) {
    auto const* const pages = from.data() + (begin - offset);
    done = detail::move_directly(direct_end - begin, file_, "write", [&](Bytes at, Bytes rest) {
      return ::pwrite(descriptor_, pages + at, rest, static_cast<::off_t>(begin + at));
    });
  }
  auto const head = std::min<Bytes>(begin - offset, from.size());
  file_.write_at(offset, from.first(head));
  file_.write_at(offset + head + done, from.subspan(head + done));
}

ROUNDPIPE_INLINE void DirectFile::read_at(Bytes offset, HostBytes to) const {
  auto const address = reinterpret_cast<std::uintptr_t>(to.data());
  Bytes done = 0;
  if (descriptor_ >= 0 && offset % page_bytes == 0 && address % page_bytes == 0) {
    auto const size = to.size() - to.size() % page_bytes;
    done = detail::move_directly(size, file_, "read", [&](Bytes at, Bytes rest) {
      return ::pread(descriptor_, to.data() + at, rest, static_cast<::off_t>(offset + at));
    });
  }
  file_.read_at(offset + done, to.subspan(done));
}

}  // namespace roundpipe
