// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Opens a file of tokenized documents, whichever of the formats it has.

#include <roundpipe/data/dataset.hpp>
#include <roundpipe/io/json_lines.hpp>
#include <roundpipe/io/mapped_file.hpp>
#include <roundpipe/io/token_file.hpp>

#include <filesystem>

namespace roundpipe {

/// The documents of the file \p path: a file of tokens if it begins as one, otherwise JSON lines.
/// The former stays mapped, the latter are held in memory.
/// \throws Error as \ref TokenFile and \ref read_json_lines do.
[[nodiscard]] inline DataSource open_data(std::filesystem::path const& path, double weight = 1) {
  if (is_token_file(MappedFile(path).bytes())) {
    return data_source(TokenFile(path), weight);
  }
  return data_source(read_json_lines(path), weight);
}

}  // namespace roundpipe
