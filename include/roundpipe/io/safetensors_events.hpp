// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads the JSON of a safetensors header, event by event, so that nothing grows unchecked.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/json.hpp>
#include <roundpipe/io/tensor_info.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roundpipe {

/// A tensor of a safetensors file, and where its bytes lie in the data behind the header.
struct SafetensorsEntry {
  TensorInfo tensor;
  Bytes begin = 0;
  Bytes end = 0;
};

namespace detail {

inline constexpr std::string_view metadata_key = "__metadata__";

/// Takes the events of nlohmann/json's parser. Everything that the format does not want throws
/// Error (bad_file); so a text of any size costs no more than the tensors that it names.
class SafetensorsEvents {
 public:
  explicit SafetensorsEvents(std::string const& file) : file_(file) {}

  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;

  // What the parser calls; each answer says that it shall go on.
  bool null() { return refuse("null"); }
  bool boolean(bool value) { return refuse(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) { return refuse(std::to_string(value)); }
  bool number_float(double, std::string const& text) { return refuse(text.substr(0, 40)); }
  bool binary(std::vector<std::uint8_t> const&) { return refuse("binary data"); }

  bool number_unsigned(std::uint64_t value) {
    if (place_ == Place::shape) {
      auto& extents = entries.back().tensor.extents;
      if (value > most_file_bytes) {
        throw fault("has the extent " + std::to_string(value) + ", which no file can hold");
      }
      if (extents.size() == most_file_rank) {
        throw fault("has more than " + std::to_string(most_file_rank) + " extents");
      }
      extents.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ == Place::offsets) {
      if (offsets_ == 2) {
        throw fault("must be two numbers and are more");
      }
      (offsets_++ == 0 ? entries.back().begin : entries.back().end) = value;
      return true;
    }
    return refuse(std::to_string(value));
  }

  bool string(std::string& value) {
    if (place_ == Place::metadata) {
      metadata[key_] = std::move(value);
    } else if (place_ == Place::tensor && key_ == "dtype") {
      entries.back().tensor.dtype = std::move(value);
    } else {
      return refuse(in_quotes(value));
    }
    return true;
  }

  bool key(std::string& value) {
    if (place_ == Place::file) {
      key_.clear();  // the message names the header
      if (!names_.insert(value).second) {
        throw fault("names " + in_quotes(value) + " twice");
      }
    } else if (place_ == Place::metadata) {
      if (metadata.contains(value)) {
        throw fault("has the key " + in_quotes(value) + " twice");
      }
    } else {
      auto const* const field = find_field(value);
      if (field == nullptr) {
        key_.clear();
        throw fault("has the field " + in_quotes(value) + ", which the format does not know");
      }
      auto& seen = seen_[static_cast<std::size_t>(field - fields.data())];
      if (seen) {
        key_.clear();
        throw fault("has the field " + in_quotes(value) + " twice");
      }
      seen = true;
    }
    key_ = std::move(value);
    return true;
  }

  bool start_object(std::size_t) {
    if (place_ == Place::outside) {
      place_ = Place::file;
    } else if (place_ == Place::file && key_ == metadata_key) {
      place_ = Place::metadata;
    } else if (place_ == Place::file) {
      entries.emplace_back().tensor.name = std::move(key_);
      key_.clear();
      seen_ = {};
      place_ = Place::tensor;
    } else {
      return refuse("an object");
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor) {
      key_.clear();
      for (std::size_t i = 0; i < fields.size(); ++i) {
        if (!seen_[i]) {
          throw fault("has no " + std::string(fields[i]));
        }
      }
    }
    place_ = place_ == Place::file ? Place::outside : Place::file;
    return true;
  }

  bool start_array(std::size_t) {
    if (place_ != Place::tensor || key_ == "dtype") {
      return refuse("an array");
    }
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    offsets_ = 0;
    return true;
  }

  bool end_array() {
    if (place_ == Place::offsets && offsets_ != 2) {
      throw fault("must be two numbers, not " + std::to_string(offsets_));
    }
    place_ = Place::tensor;
    return true;
  }

  [[noreturn]] bool parse_error(std::size_t,
                                std::string const&,
                                nlohmann::json::exception const& e) {
    throw bad_file(file_, "the header", "is no JSON: " + json_fault(e));
  }

 private:
  enum class Place : std::uint8_t { outside, file, metadata, tensor, shape, offsets };
  static constexpr std::array<std::string_view, 3> fields{"dtype", "shape", "data_offsets"};

  [[nodiscard]] static std::string_view const* find_field(std::string_view name) {
    for (auto const& field : fields) {
      if (field == name) {
        return &field;
      }
    }
    return nullptr;
  }

  /// The error of the part of the header that is being read.
  [[nodiscard]] Error fault(std::string const& text) const {
    std::string part = "the header";
    if (place_ == Place::metadata) {
      part = std::string(metadata_key);
    } else if (place_ != Place::outside && place_ != Place::file) {
      part =
          (key_.empty() ? "" : key_ + " of ") + "tensor " + in_quotes(entries.back().tensor.name);
    }
    return bad_file(file_, part, text);
  }

  /// What must stand where the parser has found \p found.
  [[noreturn]] bool refuse(std::string const& found) const {
    switch (place_) {
      case Place::outside:
        throw fault("must be an object, not " + found);
      case Place::file:
        throw fault("must have an object for " + in_quotes(key_) + ", not " + found);
      case Place::metadata:
        throw fault("must have a string for " + in_quotes(key_) + ", not " + found);
      case Place::tensor:
        throw fault(std::string("must be ") + (key_ == "dtype" ? "a string" : "an array") +
                    ", not " + found);
      default:
        throw fault("must hold numbers that count, not " + found);
    }
  }

  std::string const& file_;
  Place place_ = Place::outside;
  std::string key_;              // the last one, if its value is still to come
  std::array<bool, 3> seen_{};   // which fields the tensor has
  std::size_t offsets_ = 0;      // how many the tensor has
  std::set<std::string> names_;  // of all tensors
};

}  // namespace detail

}  // namespace roundpipe
