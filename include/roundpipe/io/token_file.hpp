// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads files of tokens: a header of 128 bytes, and flat arrays that are mapped as they
/// are.
///
/// All numbers are unsigned and little-endian. The header:
///
/// | byte | bits | field              | value |
/// |------|------|--------------------|------------------------------------------------------------|
/// | 0    |      | `magic`            | the 8 characters RPTOKENS | | 8    | 32   | `version` | 1 |
/// | 12   | 32   | `header_bytes`     | 128 | | 16   | 32   | `token_bytes`      | 2 or 4: how wide
/// a token is                                | | 20   | 32   | `reserved`         | 0 | | 24   | 64
/// | `vocabulary`       | tokens are below it; at most 2^31, and 2^16 with 2 bytes   | | 32   | 64
/// | `tokens`           | how many there are, at least 1                             | | 40   | 64
/// | `documents`        | how many there are, at least 1                             | | 48   | 64
/// | `file_bytes`       | the size of the whole file                                 | | 56   | 64
/// | `tokens_offset`    | where the section of tokens begins: 128                    | | 64   | 64
/// | `tokens_size`      | its bytes: `tokens` times `token_bytes`                    | | 72   | 64
/// | `documents_offset` | where the section of documents begins                      | | 80   | 64
/// | `documents_size`   | its bytes: (`documents` + 1) times 8                       | | 88   | 64
/// | `loss_mask_offset` | where the loss mask begins, 0 without one                  | | 96   | 64
/// | `loss_mask_size`   | its bytes: `tokens` / 8, rounded up; 0 without one         | | 104  | |
/// `reserved_end`     | 24 bytes of zero                                           |
///
/// The sections follow in this order, each at the next multiple of 64 behind the one before, and
/// the file ends with the last; bytes between sections are zero.
///
/// - *Tokens* of all documents, one after another. Tools of other languages map them as they are,
///   for example `numpy.memmap(path, "<u2", "r", 128, tokens)`.
/// - *Documents*: the number of each document's first token, then `tokens`. They grow, so no
///   document is empty.
/// - *Loss mask*: token i has bit i % 8 of byte i / 8. A set bit: the position before the token is
///   to predict the token. Other positions have no loss. Bits behind the last token are zero.
///   Without a mask, every token is to be predicted.
///
/// \ref TokenFileWriter writes such files, and so does `examples/tokenize_data.py`.

#include <roundpipe/config.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/mapped_file.hpp>
#include <roundpipe/io/token_documents.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace roundpipe {

namespace detail {

inline constexpr std::string_view token_file_magic = "RPTOKENS";
inline constexpr std::uint32_t token_file_version = 1;
inline constexpr std::size_t token_header_bytes = 128;
inline constexpr std::size_t token_section_alignment = 64;

/// Where the fields of the header of a file of tokens begin.
struct TokenHeaderField {
  char const* name;
  std::size_t offset;
};
inline constexpr TokenHeaderField token_version{"version", 8};
inline constexpr TokenHeaderField token_header_size{"header_bytes", 12};
inline constexpr TokenHeaderField token_width{"token_bytes", 16};
inline constexpr TokenHeaderField token_reserved{"reserved", 20};
inline constexpr TokenHeaderField token_vocabulary{"vocabulary", 24};
inline constexpr TokenHeaderField token_count{"tokens", 32};
inline constexpr TokenHeaderField token_documents{"documents", 40};
inline constexpr TokenHeaderField token_file_bytes{"file_bytes", 48};
inline constexpr TokenHeaderField token_reserved_end{"reserved_end", 104};

/// The sections in their order; each has the fields of its offset and, 8 bytes behind, its size.
inline constexpr std::array<TokenHeaderField, 3> token_sections{
    {{"tokens", 56}, {"documents", 72}, {"loss_mask", 88}}};

}  // namespace detail

/// Whether \p file begins as a file of tokens does, of any version.
[[nodiscard]] bool is_token_file(HostSpan<std::byte const> file) noexcept;

/// The documents of \p file, the content of the file \p name: a view of it. Checks every field of
/// the header, the documents and the padding; the cost grows with the number of documents. Tokens
/// are checked when they are read (\ref TokenDocuments::copy_tokens), or all at once by \ref
/// TokenDocuments::require_below.
/// \throws Error (bad_file) that names \p name and the field.
[[nodiscard]] TokenDocuments parse_token_file(HostSpan<std::byte const> file,
                                              std::string const& name);

/// A file of tokens, mapped. Movable; views stay valid.
class TokenFile {
 public:
  /// \throws Error as \ref MappedFile does, and as \ref parse_token_file.
  explicit TokenFile(std::filesystem::path const& path)
      : file_(path), documents_(parse_token_file(file_.bytes(), path.string())) {}

  /// The documents. The view lives as long as this object, or the one that it is moved to.
  [[nodiscard]] TokenDocuments const& view() const noexcept { return documents_; }

 private:
  MappedFile file_;
  TokenDocuments documents_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/token_file.ipp>
#endif
