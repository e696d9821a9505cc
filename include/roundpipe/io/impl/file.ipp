// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/file_error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// What one call of the system takes: Linux moves at most 2 GiB in one.
inline constexpr Bytes most_bytes_a_call = 1_GiB;

}  // namespace detail

ROUNDPIPE_INLINE File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

ROUNDPIPE_INLINE File::~File() {
  if (descriptor_ >= 0) {
    (void)::close(descriptor_);
  }
}

ROUNDPIPE_INLINE File File::open(std::filesystem::path const& path) {
  // Opening a pipe would wait for its writer.
  int const descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    throw file_error("open", path, errno);
  }
  File file(path, descriptor);
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) {
    throw file_error("look at", path, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw file_error("read as a file", path, S_ISDIR(status.st_mode) ? EISDIR : EINVAL);
  }
  return file;
}

ROUNDPIPE_INLINE File File::create(std::filesystem::path const& path) {
  int const descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    throw file_error("create", path, errno);
  }
  return {path, descriptor};
}

ROUNDPIPE_INLINE File File::open_to_write(std::filesystem::path const& path) {
  int const descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    throw file_error("open to write", path, errno);
  }
  return {path, descriptor};
}

ROUNDPIPE_INLINE Bytes File::size() const {
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0) {
    throw file_error("look at", path_, errno);
  }
  return static_cast<Bytes>(status.st_size);
}

ROUNDPIPE_INLINE void File::read_at(Bytes offset, HostBytes to) const {
  while (!to.empty()) {
    auto const read = ::pread(descriptor_,
                              to.data(),
                              std::min(to.size(), detail::most_bytes_a_call),
                              static_cast<::off_t>(offset));
    if (read < 0 && errno == EINTR) {
      continue;
    }
    if (read <= 0) {
      throw file_error(
          read == 0 ? "read beyond the end of" : "read", path_, read == 0 ? EIO : errno);
    }
    offset += static_cast<Bytes>(read);
    to = to.subspan(static_cast<Bytes>(read));
  }
}

ROUNDPIPE_INLINE void File::write_at(Bytes offset, HostSpan<std::byte const> from) const {
  while (!from.empty()) {
    auto const written = ::pwrite(descriptor_,
                                  from.data(),
                                  std::min(from.size(), detail::most_bytes_a_call),
                                  static_cast<::off_t>(offset));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      throw file_error("write", path_, written == 0 ? EIO : errno);
    }
    offset += static_cast<Bytes>(written);
    from = from.subspan(static_cast<Bytes>(written));
  }
}

ROUNDPIPE_INLINE void File::reserve(Bytes size) const {
#ifdef __linux__
  if (size > 0) {
    int status = 0;
    do {
      status = ::fallocate(descriptor_, 0, 0, static_cast<::off_t>(size));
    } while (status != 0 && errno == EINTR);
    if (status == 0) {
      return;
    }
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) {
      throw file_error("reserve " + format_bytes(size) + " for", path_, errno);
    }
  }
#endif
  if (::ftruncate(descriptor_, static_cast<::off_t>(size)) != 0) {
    throw file_error("resize", path_, errno);
  }
}

ROUNDPIPE_INLINE void File::sync() const {
  if (::fsync(descriptor_) != 0) {
    throw file_error("sync", path_, errno);
  }
}

ROUNDPIPE_INLINE void File::close() {
  if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) {
    throw file_error("close", path_, errno);
  }
}

ROUNDPIPE_INLINE std::vector<std::byte> read_file(std::filesystem::path const& path,
                                                  Bytes most_bytes) {
  auto const file = File::open(path);
  auto const size = file.size();
  if (size > most_bytes) {
    throw bad_file(path.string(),
                   "the file",
                   "has " + std::to_string(size) + " bytes, and at most " +
                       std::to_string(most_bytes) + " are read");
  }
  std::vector<std::byte> bytes(size);
  file.read_at(0, bytes);
  return bytes;
}

ROUNDPIPE_INLINE void sync_folder(std::filesystem::path const& path) {
  auto const name = path.empty() ? std::filesystem::path(".") : path;
  int const descriptor = ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    throw file_error("open the folder", name, errno);
  }
  // Some file systems sync no folders, and say so.
  int const error = ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
  (void)::close(descriptor);
  if (error != 0) {
    throw file_error("sync the folder", name, error);
  }
}

}  // namespace roundpipe
