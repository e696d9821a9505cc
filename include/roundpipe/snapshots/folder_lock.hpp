// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Keeps a folder for one writer at a time.

#include <roundpipe/config.hpp>

#include <filesystem>
#include <utility>

namespace roundpipe {

/// Holds a lock (`flock`) on a folder, and leaves no file there: the system drops the lock with the
/// process, however that ends. Movable; a moved-from one holds nothing.
class FolderLock {
 public:
  /// \throws Error (std::errc::resource_unavailable_try_again) when another lock holds the folder,
  ///         in this process or another; with the system's code when it cannot be opened. File
  ///         systems that know no locks let everybody in.
  explicit FolderLock(std::filesystem::path const& folder);
  FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FolderLock& operator=(FolderLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  FolderLock(FolderLock const&) = delete;
  FolderLock& operator=(FolderLock const&) = delete;
  ~FolderLock();

 private:
  int descriptor_ = -1;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/snapshots/impl/folder_lock.ipp>
#endif
