// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief Where a program's JSON goes.

#include <common/output_file.hpp>

#include <nlohmann/json.hpp>

#include <iostream>
#include <optional>
#include <string>

namespace throughput {

/// The value of `--json`: a file; "-", the standard output; or empty, nowhere.
class JsonOutput {
 public:
  /// Opens the file, so that a path that cannot be written fails before the work starts.
  explicit JsonOutput(std::string const& path) : to_standard_output_(path == "-") {
    if (!path.empty() && !to_standard_output_) {
      file_.emplace(path);
    }
  }

  /// Whether the JSON takes the place of the text for people.
  [[nodiscard]] bool to_standard_output() const noexcept { return to_standard_output_; }

  void write(nlohmann::ordered_json const& json) {
    if (to_standard_output_) {
      std::cout << json.dump(2) << '\n';
    } else if (file_) {
      file_->stream() << json.dump(2) << '\n';
      file_->commit();
    }
  }

 private:
  bool to_standard_output_;
  std::optional<examples::OutputFile> file_;
};

}  // namespace throughput
