// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The control groups that a Linux process is in, from its own up to the root, versions 1
/// and 2.

#include <roundpipe/config.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace roundpipe::detail {

/// The text of a file; empty when it cannot be read.
[[nodiscard]] std::string text_of(std::string const& path);

/// Folders that may tell what control groups leave to a process. Some may not exist.
struct GroupFolders {
  std::vector<std::string> v1;
  std::vector<std::string> v2;
};

/// The folders of \p controller, such as "cpu", for a process whose /proc/self/cgroup reads
/// \p membership, with the groups' file systems at \p root: those of the process's group and of
/// all groups around it, since each of them limits the process. Malformed lines are skipped. In a
/// container the process's group may have no folder of its name: the root's is listed, too.
[[nodiscard]] GroupFolders group_folders(std::string const& membership,
                                         std::string const& root,
                                         std::string_view controller);

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/control_groups.ipp>
#endif
