// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Bytes as tokens: a tokenizer of 256 tokens, and text tokenized by it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace make_tiny_checkpoint {

/// The tokenizer.json of the package `tokenizers` for a vocabulary of the 256 bytes: token n is
/// byte n.
[[nodiscard]] std::string byte_tokenizer_json();

/// Writes the bytes of the files \p paths, each a document, as a file of tokens. \returns the
/// number of tokens.
/// \throws roundpipe::Error when a file cannot be read or is empty, or \p to cannot be written.
std::uint64_t write_byte_tokens(std::vector<std::string> const& paths,
                                std::filesystem::path const& to);

}  // namespace make_tiny_checkpoint
