// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A file that appears under its name whole, or not at all.

#include <roundpipe/core/error.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <system_error>
#include <unistd.h>

namespace examples {

/// Writes to a temporary file beside the target, which `commit()` renames. Writes directly to
/// targets that are no regular files (a terminal, a pipe).
class OutputFile {
 public:
  /// Opens the temporary file, so a path that cannot be written fails before the work starts.
  /// \throws roundpipe::Error (with the system's code) naming \p path.
  explicit OutputFile(std::string const& path) : path_(path), target_(path), written_(path) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    if (fs::is_directory(target_, ignored)) {
      fail(std::make_error_code(std::errc::is_a_directory));
    }
    if (!fs::exists(target_, ignored) || fs::is_regular_file(target_, ignored)) {
      if (fs::is_symlink(target_, ignored)) {
        target_ = fs::canonical(target_);  // replaces the target of a link, not the link
      }
      written_ = target_;
      written_ += "." + std::to_string(::getpid()) + ".partial";
    }
    errno = 0;
    stream_.open(written_, std::ios::binary | std::ios::trunc);
    if (!stream_) {
      fail(std::error_code(errno != 0 ? errno : EIO, std::generic_category()));
    }
  }
  OutputFile(OutputFile const&) = delete;
  OutputFile& operator=(OutputFile const&) = delete;
  ~OutputFile() {
    if (!committed_ && is_temporary()) {
      stream_.close();
      std::error_code ignored;
      std::filesystem::remove(written_, ignored);
    }
  }

  [[nodiscard]] std::ostream& stream() noexcept { return stream_; }
  /// As the user wrote it.
  [[nodiscard]] std::string const& path() const noexcept { return path_; }

  /// Renames the file to its final name. \throws roundpipe::Error if not all of it could be
  /// written.
  void commit() {
    stream_.close();
    if (!stream_) {
      fail(std::make_error_code(std::errc::io_error));
    }
    if (is_temporary()) {
      std::error_code code;
      std::filesystem::rename(written_, target_, code);
      if (code) {
        fail(code);
      }
    }
    committed_ = true;
  }

 private:
  [[nodiscard]] bool is_temporary() const { return written_ != target_; }
  [[noreturn]] void fail(std::error_code code) const {
    throw roundpipe::Error(code, "cannot write '" + path_ + "'");
  }

  std::string path_;
  std::filesystem::path target_;   // the file that gets the content in the end
  std::filesystem::path written_;  // the file that is written until then
  std::ofstream stream_;
  bool committed_ = false;
};

}  // namespace examples
