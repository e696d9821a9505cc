// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/token_documents.hpp>
#include <roundpipe/io/token_file.hpp>
#include <roundpipe/io/token_file_writer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE TokenFileWriter::TokenFileWriter(std::filesystem::path path,
                                                  std::uint64_t vocabulary)
    : file_((roundpipe::require(vocabulary >= 1 && vocabulary <= token_limit,
                                Errc::invalid_argument,
                                "the vocabulary of a file of tokens has 1 to 2^31 tokens"),
             std::move(path))),
      vocabulary_(vocabulary),
      token_bytes_(vocabulary <= std::uint64_t{1} << 16 ? 2 : 4) {}

ROUNDPIPE_INLINE void TokenFileWriter::append(HostSpan<std::int32_t const> tokens,
                                              HostSpan<std::int32_t const> labels) {
  require(is_open_, "is finished, or could not be written");
  require(labels.empty() || labels.size() == tokens.size(), "gets a label for each token, or none");
  bool masks = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto const refuse = [&](char const* what, std::int32_t number, std::string const& wanted) {
      throw Error(Errc::invalid_argument,
                  in_quotes(file_.path().string()) + ": " + what + ' ' +
                      std::to_string(tokens_ + i) + " is " + std::to_string(number) + ": want " +
                      wanted);
    };
    if (tokens[i] < 0 || static_cast<std::uint64_t>(tokens[i]) >= vocabulary_) [[unlikely]] {
      refuse("token", tokens[i], "0 to " + std::to_string(vocabulary_ - 1));
    }
    if (!labels.empty() && labels[i] != tokens[i]) {
      if (labels[i] != ignored_label) [[unlikely]] {
        refuse("label",
               labels[i],
               std::to_string(ignored_label) + ", or the token, " + std::to_string(tokens[i]));
      }
      masks = true;
    }
  }
  auto const set_bit = [&](std::uint64_t token) {
    mask_[token / 8] |= std::byte{1} << static_cast<unsigned>(token % 8);
  };
  if (masks && !has_mask_) {
    has_mask_ = true;
    mask_.resize((tokens_ + 7) / 8);
    for (std::uint64_t t = 0; t < tokens_; ++t) {
      set_bit(t);
    }
  }
  is_open_ = false;  // unless writing succeeds
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::array<std::byte, sizeof(std::int32_t)> bytes{};
    std::memcpy(bytes.data(), &tokens[i], bytes.size());
    write(std::span(bytes).first(token_bytes_));
    if (has_mask_) {
      mask_.resize((tokens_ + 8) / 8);
      if (labels.empty() || labels[i] == tokens[i]) {
        set_bit(tokens_);
      }
    }
    ++tokens_;
  }
  is_open_ = true;
}

ROUNDPIPE_INLINE void TokenFileWriter::end_document() {
  require(is_open_, "is finished, or could not be written");
  require(documents_.back() != tokens_, "has no open document to end");
  documents_.push_back(tokens_);
}

ROUNDPIPE_INLINE void TokenFileWriter::finish() {
  require(is_open_, "is finished, or could not be written");
  require(documents() > 0, "would hold no document");
  require(documents_.back() == tokens_, "has a document that has not ended");

  is_open_ = false;  // whatever happens
  std::array<std::byte, detail::token_header_bytes> header{};
  auto const set = [&](std::size_t offset, auto value) {
    std::memcpy(header.data() + offset, &value, sizeof(value));
  };
  std::uint64_t end = detail::token_header_bytes;
  std::size_t next = 0;
  auto const place = [&](std::uint64_t bytes) {
    auto const offset = detail::token_sections[next++].offset;
    auto const begin = align_up(end, detail::token_section_alignment);
    set(offset, std::uint64_t{begin});
    set(offset + sizeof(std::uint64_t), bytes);
    end = begin + bytes;
  };
  auto const add = [&](HostSpan<std::byte const> section) {
    auto const at = written_ + buffer_.size();
    std::array<std::byte, detail::token_section_alignment> const zeros{};
    write(std::span(zeros).first(align_up(at, detail::token_section_alignment) - at));
    place(section.size());
    flush();
    file_.file().write_at(written_, section);
    written_ += section.size();
  };
  place(tokens_ * token_bytes_);
  add(std::as_bytes(std::span(documents_)));
  if (has_mask_) {
    add(mask_);
  }
  std::memcpy(header.data(), detail::token_file_magic.data(), detail::token_file_magic.size());
  set(detail::token_version.offset, detail::token_file_version);
  set(detail::token_header_size.offset, static_cast<std::uint32_t>(header.size()));
  set(detail::token_width.offset, static_cast<std::uint32_t>(token_bytes_));
  set(detail::token_vocabulary.offset, vocabulary_);
  set(detail::token_count.offset, tokens_);
  set(detail::token_documents.offset, documents());
  set(detail::token_file_bytes.offset, end);
  file_.file().write_at(0, header);
  file_.commit();
}

ROUNDPIPE_INLINE void TokenFileWriter::require(bool good, char const* fault) const {
  if (!good) {
    throw Error(Errc::invalid_argument, in_quotes(file_.path().string()) + ": the file " + fault);
  }
}

ROUNDPIPE_INLINE void TokenFileWriter::write(HostSpan<std::byte const> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= 1_MiB) {
    flush();
  }
}

ROUNDPIPE_INLINE void TokenFileWriter::flush() {
  file_.file().write_at(written_, buffer_);
  written_ += buffer_.size();
  buffer_.clear();
}

}  // namespace roundpipe
