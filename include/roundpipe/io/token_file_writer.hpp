// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Writes files of tokens, document by document.

#include <roundpipe/config.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/token_file.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace roundpipe {

/// Writes the file that token_file.hpp describes. Tokens go to the disk as they come. Until the end
/// the writer holds 8 bytes of memory for each document, and 1 bit for each token once a token is
/// masked. The file has its name only when \ref finish returns; without `finish` there is none.
class TokenFileWriter {
 public:
  /// \param vocabulary Every token will be below it. Up to 65536 the file has 2 bytes a token,
  ///        above it 4.
  /// \throws Error (invalid_argument) when \p vocabulary is not 1 to \ref token_limit, and with the
  ///         system's code when the file cannot be created.
  TokenFileWriter(std::filesystem::path path, std::uint64_t vocabulary);

  /// Appends tokens to the document that is open; the first ones open one. \p labels stand as \ref
  /// TokenDocuments says, each \ref ignored_label or the token itself; with none, no token is
  /// masked. Copies both.
  /// \throws Error (invalid_argument), and appends nothing, for another number of labels than of
  ///         tokens, a token that is not below the vocabulary, or another label; with the system's
  ///         code when writing fails, and then the file cannot be finished.
  void append(HostSpan<std::int32_t const> tokens, HostSpan<std::int32_t const> labels = {});

  /// Ends the document that is open. \throws Error (invalid_argument) when none is.
  void end_document();

  /// Appends a whole document: \ref append and \ref end_document.
  void add(HostSpan<std::int32_t const> tokens, HostSpan<std::int32_t const> labels = {}) {
    append(tokens, labels);
    end_document();
  }

  /// Writes what is left, syncs the file and gives it its name, in place of what had the name
  /// before. Nothing can be appended afterwards.
  /// \throws Error (invalid_argument) when a document is open or there is none, and with the
  ///         system's code when writing fails.
  void finish();

  /// The number of tokens so far.
  [[nodiscard]] std::uint64_t tokens() const noexcept { return tokens_; }
  /// The number of ended documents.
  [[nodiscard]] std::uint64_t documents() const noexcept { return documents_.size() - 1; }

 private:
  void require(bool good, char const* fault) const;
  void write(HostSpan<std::byte const> bytes);
  void flush();

  AtomicFile file_;
  std::uint64_t vocabulary_ = 0;
  std::size_t token_bytes_ = 4;
  std::uint64_t tokens_ = 0;
  std::vector<std::uint64_t> documents_{0};
  bool has_mask_ = false;
  std::vector<std::byte> mask_;                         // of all tokens so far
  std::vector<std::byte> buffer_;                       // not written yet
  std::uint64_t written_ = detail::token_header_bytes;  // where the buffer goes
  bool is_open_ = true;                                 // and no write has failed
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/token_file_writer.ipp>
#endif
