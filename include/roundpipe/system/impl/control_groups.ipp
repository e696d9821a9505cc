// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/system/control_groups.hpp>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe::detail {

ROUNDPIPE_INLINE std::string text_of(std::string const& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Adds the folders of \p group, a path below \p mount, and of all groups around it to \p folders.
ROUNDPIPE_INLINE void add_path(std::string const& mount,
                               std::string_view group,
                               std::vector<std::string>& folders) {
  for (;;) {
    while (group.ends_with('/')) {
      group.remove_suffix(1);
    }
    folders.push_back(mount + "/" + std::string(group));
    if (group.empty()) {
      return;
    }
    group = group.substr(0, group.rfind('/') + 1);
  }
}

ROUNDPIPE_INLINE GroupFolders group_folders(std::string const& membership,
                                            std::string const& root,
                                            std::string_view controller) {
  auto const wanted = "," + std::string(controller) + ",";
  GroupFolders folders;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // number:controllers:group
    auto const controllers_at = line.find(':') + 1;
    auto const group_at = line.find(':', controllers_at) + 1;
    if (controllers_at == 0 || group_at == 0) {
      continue;
    }
    auto const controllers = line.substr(controllers_at, group_at - 1 - controllers_at);
    auto const group = std::string_view(line).substr(group_at);
    if (controllers.empty()) {
      add_path(root, group, folders.v2);
      add_path(root + "/unified", group, folders.v2);
    } else if (("," + controllers + ",").find(wanted) != std::string::npos) {
      add_path(root + "/" + controllers, group, folders.v1);
      if (controllers != controller) {
        add_path(root + "/" + std::string(controller), group, folders.v1);
      }
    }
  }
  return folders;
}

}  // namespace roundpipe::detail
