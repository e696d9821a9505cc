// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A folder for the files of one test case, removed at its end.

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <system_error>

namespace roundpipe::test {

class TemporaryFolder {
 public:
  TemporaryFolder()
      : path(std::filesystem::temp_directory_path() /
             ("roundpipe_test_" + std::to_string(std::random_device()()))) {
    std::filesystem::create_directories(path);
  }
  TemporaryFolder(TemporaryFolder const&) = delete;
  TemporaryFolder& operator=(TemporaryFolder const&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  /// Writes \p text, and an end of line, to \p file in the folder, in folders made where they lack.
  void write(std::string const& file, std::string const& text) const {
    std::filesystem::create_directories((path / file).parent_path());
    std::ofstream(path / file) << text << '\n';
  }

  std::filesystem::path const path;
};

}  // namespace roundpipe::test
