// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/token_documents.hpp>
#include <roundpipe/io/token_file.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace roundpipe {

namespace detail {

/// Reads and checks the header and the sections of a file of tokens, field by field. Nothing is
/// multiplied or added before it is known to be no larger than the file.
class TokenFileParser {
 public:
  TokenFileParser(HostSpan<std::byte const> file, std::string const& name)
      : file_(file), name_(name) {}

  [[nodiscard]] TokenDocuments parse() {
    require(is_token_file(file_), "magic", "is not '" + std::string(token_file_magic) + "'");
    require(file_.size() >= token_header_bytes,
            "header",
            "is cut off: the file has " + std::to_string(file_.size()) + " bytes");
    require_is(token_version, number<std::uint32_t>(token_version), token_file_version);
    require_is(token_header_size, number<std::uint32_t>(token_header_size), token_header_bytes);
    require_is(token_reserved, number<std::uint32_t>(token_reserved), 0);
    require_zero(token_reserved_end.offset, token_header_bytes, token_reserved_end.name);

    TokenMemory memory{.name = name_};
    memory.token_bytes = number<std::uint32_t>(token_width);
    require(memory.token_bytes == 2 || memory.token_bytes == 4,
            token_width.name,
            "is " + std::to_string(memory.token_bytes) + ", not 2 or 4");
    memory.vocabulary = number<std::uint64_t>(token_vocabulary);
    auto const most = memory.token_bytes == 2 ? std::uint64_t{1} << 16 : token_limit;
    require(memory.vocabulary >= 1 && memory.vocabulary <= most,
            token_vocabulary.name,
            "is " + std::to_string(memory.vocabulary) + ", not 1 to " + std::to_string(most));

    require_is(token_file_bytes, number<std::uint64_t>(token_file_bytes), file_.size());
    auto const tokens = count(token_count, memory.token_bytes);
    auto const documents = count(token_documents, sizeof(std::uint64_t));
    memory.tokens = section(0, tokens * memory.token_bytes);
    memory.documents = section(1, (documents + 1) * sizeof(std::uint64_t));
    if (number<std::uint64_t>(offset_of(2)) != 0 ||
        number<std::uint64_t>(size_of_section(2)) != 0) {
      memory.loss_mask = section(2, (tokens + 7) / 8);
      auto const last = std::to_integer<unsigned>(memory.loss_mask.back());
      require(tokens % 8 == 0 || last >> (tokens % 8) == 0,
              "loss_mask",
              "has a bit behind the last token");
    }
    require(end_ == file_.size(),
            "file",
            "has " + std::to_string(file_.size()) + " bytes, and its sections end at byte " +
                std::to_string(end_));
    check_documents(memory.documents, tokens, documents);
    return TokenDocuments(std::move(memory));
  }

 private:
  void require(bool good, std::string const& field, std::string const& fault) const {
    if (!good) [[unlikely]] {
      throw bad_file(name_, field, fault);
    }
  }
  void require_is(TokenHeaderField const& field, std::uint64_t value, std::uint64_t wanted) const {
    require(value == wanted,
            field.name,
            "is " + std::to_string(value) + ", not " + std::to_string(wanted));
  }
  void require_zero(std::size_t first, std::size_t end, std::string const& field) const {
    auto const part = file_.subspan(first, end - first);
    require(std::all_of(part.begin(), part.end(), [](auto byte) { return byte == std::byte{0}; }),
            field,
            "is not zero");
  }

  template <class T>
  [[nodiscard]] T number(TokenHeaderField const& field) const noexcept {
    T value{};
    std::memcpy(&value, file_.data() + field.offset, sizeof(T));
    return value;
  }

  /// A number of elements of \p bytes bytes each, at least 1. The file is large enough for all.
  [[nodiscard]] std::uint64_t count(TokenHeaderField const& field, std::size_t bytes) const {
    auto const value = number<std::uint64_t>(field);
    require(value >= 1, field.name, "is 0");
    require(value <= file_.size() / bytes,
            field.name,
            "is " + std::to_string(value) + ", and the file has " + std::to_string(file_.size()) +
                " bytes");
    return value;
  }

  [[nodiscard]] static TokenHeaderField offset_of(std::size_t section) noexcept {
    return token_sections[section];
  }
  [[nodiscard]] static TokenHeaderField size_of_section(std::size_t section) noexcept {
    return {token_sections[section].name, token_sections[section].offset + sizeof(std::uint64_t)};
  }

  /// The section number \p index, which must follow the one before and have \p wanted bytes.
  [[nodiscard]] HostSpan<std::byte const> section(std::size_t index, std::uint64_t wanted) {
    std::string const name = token_sections[index].name;
    auto const offset = number<std::uint64_t>(offset_of(index));
    auto const bytes = number<std::uint64_t>(size_of_section(index));
    auto const begin = align_up(end_, token_section_alignment);
    require(offset == begin,
            name + "_offset",
            "is " + std::to_string(offset) + ", not " + std::to_string(begin));
    require(bytes == wanted,
            name + "_size",
            "is " + std::to_string(bytes) + ", not " + std::to_string(wanted));
    require(begin <= file_.size() && bytes <= file_.size() - begin,
            name + "_size",
            "is " + std::to_string(bytes) + ", more than the file has behind byte " +
                std::to_string(begin));
    require_zero(end_, begin, "the padding before " + name);
    end_ = begin + bytes;
    return file_.subspan(begin, bytes);
  }

  void check_documents(HostSpan<std::byte const> array,
                       std::uint64_t tokens,
                       std::uint64_t documents) const {
    std::uint64_t before = 0;
    for (std::uint64_t d = 0; d <= documents; ++d) {
      std::uint64_t first = 0;
      std::memcpy(&first, array.data() + d * sizeof(first), sizeof(first));
      auto const element = [&] { return "documents element " + std::to_string(d); };
      if (d == 0 ? first != 0 : first <= before) [[unlikely]] {
        require(false,
                element(),
                "is " + std::to_string(first) +
                    (d == 0 ? ", not 0" : ", not above " + std::to_string(before)));
      }
      if (d == documents ? first != tokens : first >= tokens) [[unlikely]] {
        require(false,
                element(),
                "is " + std::to_string(first) + (d == documents ? ", not " : ", not below ") +
                    std::to_string(tokens));
      }
      before = first;
    }
  }

  HostSpan<std::byte const> file_;
  std::string const& name_;
  std::uint64_t end_ = token_header_bytes;  // of the sections so far
};

}  // namespace detail

ROUNDPIPE_INLINE bool is_token_file(HostSpan<std::byte const> file) noexcept {
  auto const& magic = detail::token_file_magic;
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

ROUNDPIPE_INLINE TokenDocuments parse_token_file(HostSpan<std::byte const> file,
                                                 std::string const& name) {
  return detail::TokenFileParser(file, name).parse();
}

}  // namespace roundpipe
