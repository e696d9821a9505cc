// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/file_error.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  for (std::size_t n = 0;; ++n) {
    try {
      file_ = File::create(path_.string() + '.' + std::to_string(n) + ".partial");
      return;
    } catch (Error const& error) {
      if (error.code() != std::errc::file_exists) {
        throw;
      }
    }
  }
}

ROUNDPIPE_INLINE AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::move(other.file_)) {}

ROUNDPIPE_INLINE AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  return *this;
}

ROUNDPIPE_INLINE AtomicFile::~AtomicFile() {
  if (file_.descriptor() >= 0) {
    (void)::unlink(file_.path().c_str());
  }
}

ROUNDPIPE_INLINE void AtomicFile::commit() {
  file_.sync();
  if (std::rename(file_.path().c_str(), path_.c_str()) != 0) {
    throw file_error("rename a file to", path_, errno);
  }
  auto const folder = path_.parent_path();
  File(std::move(file_)).close();
  sync_folder(folder);
}

ROUNDPIPE_INLINE void write_file(std::filesystem::path const& path, std::string_view content) {
  AtomicFile file(path);
  file.file().write_at(0, std::as_bytes(std::span(content)));
  file.commit();
}

}  // namespace roundpipe
