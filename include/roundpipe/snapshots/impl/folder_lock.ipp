// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/io/file_error.hpp>
#include <roundpipe/snapshots/folder_lock.hpp>

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

namespace roundpipe {

ROUNDPIPE_INLINE FolderLock::FolderLock(std::filesystem::path const& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw file_error("open the folder", folder, errno);
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    (void)::close(descriptor_);
    throw file_error("lock, because another writer is at work there, the folder", folder, EAGAIN);
  }
}

ROUNDPIPE_INLINE FolderLock::~FolderLock() {
  if (descriptor_ >= 0) {
    (void)::close(descriptor_);
  }
}

}  // namespace roundpipe
