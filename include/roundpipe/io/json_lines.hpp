// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads tokenized documents from lines of JSON, as datasets of transformers are exported.
///
/// Each line is an object, `{"input_ids": [5, 17, 2], "labels": [-100, 17, 2]}`:
///
/// - `input_ids`: the tokens of a document, at least one.
/// - `labels`: as many numbers, each a token or -100 (\ref ignored_label); without them the tokens
///   are the labels. Number i says what position i - 1 should predict: labels stand beside their
///   own token, as in transformers, which shifts them. \ref TokenRows does that here.
/// - `attention_mask`: as many ones. A 0 is refused, because rows are padded later.
/// - Other fields, and lines of white space, are skipped.
///
/// The documents are held in memory, see \ref TokenArrays. Large ones belong in files of tokens.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/json.hpp>
#include <roundpipe/io/mapped_file.hpp>
#include <roundpipe/io/token_arrays.hpp>
#include <roundpipe/io/token_documents.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe {

namespace detail {

/// Takes the events of nlohmann/json's parser for one line after another. Memory grows with the
/// numbers that were read, and nothing else.
class JsonLineEvents {
 public:
  explicit JsonLineEvents(std::string const& file) : file_(file) {}

  /// Reads \p text, line number \p line, and appends its document to \p documents.
  void read(std::string_view text, std::size_t line, TokenArrays& documents) {
    line_ = line;
    place_ = Place::outside;
    field_ = nullptr;
    seen_ = {};
    tokens_.clear();
    labels_.clear();
    ones_ = 0;
    require_json_text(text, file_, "line " + std::to_string(line));
    (void)nlohmann::json::sax_parse(text.begin(), text.end(), this);
    field_ = &fields[0];
    if (tokens_.empty()) {
      throw fault(seen_[0] ? "has no element" : "is missing");
    }
    field_ = &fields[1];
    require_count(seen_[1], labels_.size());
    field_ = &fields[2];
    require_count(seen_[2], ones_);
    documents.add(tokens_, labels_);
  }

  // What the parser calls; each answer says that it shall go on.
  bool null() { return other("null"); }
  bool boolean(bool value) { return other(value ? "true" : "false"); }
  bool number_float(double, std::string const& text) { return other(text.substr(0, 40)); }
  bool string(std::string const& value) { return other(in_quotes(value)); }
  bool binary(std::vector<std::uint8_t> const&) { return other("binary data"); }
  bool number_integer(std::int64_t value) {
    if (place_ == Place::numbers && field_ == &fields[1] && value == ignored_label) {
      labels_.push_back(ignored_label);
      return true;
    }
    return other(std::to_string(value));
  }
  bool number_unsigned(std::uint64_t value) {
    bool const is_mask = field_ == &fields[2];
    if (place_ != Place::numbers || (is_mask ? value != 1 : value >= token_limit)) {
      return other(std::to_string(value));
    }
    if (is_mask) {
      ++ones_;
    } else {
      (field_ == &fields[0] ? tokens_ : labels_).push_back(static_cast<std::int32_t>(value));
    }
    return true;
  }

  bool key(std::string const& name) {
    if (place_ == Place::object) {
      auto const* const found = std::find(fields.begin(), fields.end(), name);
      field_ = found == fields.end() ? nullptr : found;
      if (field_ != nullptr) {
        auto& seen = seen_[static_cast<std::size_t>(found - fields.begin())];
        if (seen) {
          throw fault("stands twice in the line");
        }
        seen = true;
      }
    }
    return true;
  }
  bool start_object(std::size_t) {
    if (place_ == Place::outside) {
      place_ = Place::object;
      return true;
    }
    return enter("an object");
  }
  bool end_object() { return leave(); }
  bool start_array(std::size_t) {
    if (place_ == Place::object && field_ != nullptr) {
      place_ = Place::numbers;
      return true;
    }
    return enter("an array");
  }
  bool end_array() { return leave(); }

  [[noreturn]] bool parse_error(std::size_t position,
                                std::string const&,
                                nlohmann::json::exception const& error) {
    auto text = json_fault(error);  // "parse error at line 1, column 5: ..."
    if (auto const end = text.find(": "); text.starts_with("parse error") && end < text.size()) {
      text.erase(0, end + 2);
    }
    throw bad_file(file_,
                   "line " + std::to_string(line_),
                   "is no JSON: at column " + std::to_string(position) + ": " + text);
  }

 private:
  enum class Place : std::uint8_t {
    outside,  // of the line's object
    object,   // in it
    numbers,  // in the array of a field
    skipped,  // in a value of a field that is skipped
  };
  static constexpr std::array<std::string_view, 3> fields{"input_ids", "labels", "attention_mask"};

  /// A value that stands where \p found should not, unless its field is skipped.
  bool other(std::string const& found) const {
    if (place_ == Place::numbers) {
      auto const element = field_ == &fields[0]   ? tokens_.size()
                           : field_ == &fields[1] ? labels_.size()
                                                  : ones_;
      throw fault("element " + std::to_string(element) + " is " + found + ", not " +
                  (field_ == &fields[0]   ? "a token from 0 to 2^31 - 1"
                   : field_ == &fields[1] ? "a token from 0 to 2^31 - 1, or -100"
                                          : "1; documents must come without padding"));
    }
    if (place_ == Place::outside || (place_ == Place::object && field_ != nullptr)) {
      throw fault("is " + found + (field_ == nullptr ? ", not an object" : ", not an array"));
    }
    return true;
  }
  /// An object or an array that no field wants.
  bool enter(std::string const& found) {
    (void)other(found);
    depth_ = place_ == Place::skipped ? depth_ + 1 : 1;
    place_ = Place::skipped;
    return true;
  }
  bool leave() {
    if (place_ == Place::object) {
      place_ = Place::outside;
    } else if (place_ == Place::numbers || --depth_ == 0) {
      place_ = Place::object;
    }
    return true;
  }
  void require_count(bool is_there, std::size_t count) const {
    if (is_there && count != tokens_.size()) {
      throw fault("has " + std::to_string(count) + " elements, and input_ids " +
                  std::to_string(tokens_.size()));
    }
  }
  /// The error of the field that is being read, or of the line.
  [[nodiscard]] Error fault(std::string const& text) const {
    return bad_file(
        file_,
        "line " + std::to_string(line_) + (field_ == nullptr ? "" : ": " + std::string(*field_)),
        text);
  }

  std::string const& file_;
  std::size_t line_ = 0;
  Place place_ = Place::outside;
  std::string_view const* field_ = nullptr;  // of `fields`, whose value is read; none of others
  std::array<bool, 3> seen_{};
  std::size_t depth_ = 0;  // of objects and arrays in the value that is skipped
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> labels_;
  std::size_t ones_ = 0;  // of attention_mask
};

}  // namespace detail

/// The documents of \p text, the content of the file \p name.
/// \throws Error (bad_file) that names \p name, the line and the field.
[[nodiscard]] inline TokenArrays parse_json_lines(HostSpan<std::byte const> text,
                                                  std::string const& name) {
  TokenArrays documents(name);
  detail::JsonLineEvents events(name);
  auto left = detail::text_of(text);
  for (std::size_t line = 1; !left.empty(); ++line) {
    auto const end = std::min(left.find('\n'), left.size());
    auto const one = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (one.find_first_not_of(" \t\r") != std::string_view::npos) {
      events.read(one, line, documents);
    }
  }
  if (documents.size() == 0) {
    throw bad_file(name, "the file", "has no line with a document");
  }
  return documents;
}

/// The documents of the file \p path.
/// \throws Error as \ref MappedFile does, and as \ref parse_json_lines.
[[nodiscard]] inline TokenArrays read_json_lines(std::filesystem::path const& path) {
  MappedFile const file(path);
  file.expect_sequential_reads();
  return parse_json_lines(file.bytes(), path.string());
}

}  // namespace roundpipe
