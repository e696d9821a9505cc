// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The header of a safetensors file: parsed and checked, or laid out for writing.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/json.hpp>
#include <roundpipe/io/safetensors_events.hpp>
#include <roundpipe/io/tensor_info.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace roundpipe {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

/// The texts that a file carries beside its tensors; {"format": "pt"} is what transformers asks
/// for.
using SafetensorsMetadata = std::map<std::string, std::string>;

/// What stands before the data of a safetensors file: the length of a JSON text (8 bytes,
/// little-endian), and this text, which tells each tensor's type, extents and place in the data.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< In the order of their data, without gaps.
  SafetensorsMetadata metadata;
  Bytes data_begin = 0;  ///< In the file.

  [[nodiscard]] Bytes file_bytes() const noexcept {
    return data_begin + (entries.empty() ? 0 : entries.back().end);
  }
};

/// The format allows no longer text.
inline constexpr Bytes most_safetensors_header_bytes = 100'000'000;

namespace detail {

/// Checks the types, extents and places of \p entries in \p data_bytes of data, and sorts them.
/// \throws Error (bad_file).
inline void place_entries(std::vector<SafetensorsEntry>& entries,
                          Bytes data_bytes,
                          std::string const& file) {
  auto const refuse =
      [&](char const* field, SafetensorsEntry const& entry, std::string const& what) {
        throw bad_file(file, field + (" of tensor " + in_quotes(entry.tensor.name)), what);
      };
  auto const places = "data_offsets";
  for (auto const& entry : entries) {
    auto const want = checked_bytes(entry.tensor);
    if (want.field != nullptr) {
      refuse(want.field, entry, want.fault);
    }
    if (entry.begin > entry.end) {
      refuse(places,
             entry,
             "begin at " + std::to_string(entry.begin) + ", after their end, " +
                 std::to_string(entry.end));
    }
    if (entry.end > data_bytes) {
      refuse(places,
             entry,
             "end at " + std::to_string(entry.end) + ", but the file holds " +
                 std::to_string(data_bytes) + " bytes of data");
    }
    if (entry.end - entry.begin != want.bytes) {
      refuse(places,
             entry,
             "hold " + std::to_string(entry.end - entry.begin) + " bytes, but " +
                 to_string(entry.tensor) + " takes " + std::to_string(want.bytes));
    }
  }
  std::ranges::stable_sort(entries, [](auto const& a, auto const& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  Bytes end = 0;
  SafetensorsEntry const* before = nullptr;
  for (auto const& entry : entries) {
    if (entry.begin != end) {
      auto const behind = before == nullptr ? std::string("the header")
                                            : "tensor " + in_quotes(before->tensor.name);
      refuse(places,
             entry,
             "begin at " + std::to_string(entry.begin) +
                 (entry.begin < end ? ", in the data of " : ", with a gap behind ") + behind +
                 (before == nullptr ? "" : ", which ends at " + std::to_string(end)));
    }
    end = entry.end;
    before = &entry;
  }
  if (end != data_bytes) {
    throw bad_file(file,
                   "the data",
                   "has " + std::to_string(data_bytes) + " bytes, but the header tells of " +
                       std::to_string(end));
  }
}

}  // namespace detail

/// Reads and checks the header of \p file, which holds a whole safetensors file; no byte of the
/// data is touched. \p name is for messages.
/// \throws Error (bad_file), whose message names the file, the tensor and the field: for a length
///         beyond the file or the format's limit; for a text that is no JSON, has a key twice, or
///         other values than the format knows; for extents that are negative or too large; for
///         places that are not the data in whole, once.
[[nodiscard]] inline SafetensorsHeader parse_safetensors_header(HostSpan<std::byte const> file,
                                                                std::string const& name) {
  std::uint64_t length = 0;
  if (file.size() < sizeof length) {
    throw bad_file(name,
                   "the length of the header",
                   "needs 8 bytes, but the file has " + std::to_string(file.size()));
  }
  std::memcpy(&length, file.data(), sizeof length);
  auto const rest = file.size() - sizeof length;
  if (length > most_safetensors_header_bytes) {
    throw bad_file(name,
                   "the length of the header",
                   "is " + std::to_string(length) + "; the format allows at most " +
                       std::to_string(most_safetensors_header_bytes));
  }
  if (length > rest) {
    throw bad_file(name,
                   "the length of the header",
                   "is " + std::to_string(length) + ", but the file has " + std::to_string(rest) +
                       " bytes behind it");
  }
  auto const text = detail::text_of(file.subspan(sizeof length, length));
  detail::require_json_text(text, name, "the header");
  if (!text.starts_with('{')) {
    throw bad_file(name, "the header", "must begin with '{'");
  }
  detail::SafetensorsEvents events(name);
  (void)nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  detail::place_entries(events.entries, rest - length, name);
  return {std::move(events.entries), std::move(events.metadata), sizeof length + length};
}

/// \p header as the bytes at the beginning of its file: the length, the text, and spaces up to a
/// multiple of 8. \throws Error (invalid_argument) when a name or text is no UTF-8, or the text
/// is longer than the format allows.
[[nodiscard]] inline std::string safetensors_header_text(SafetensorsHeader const& header) {
  auto const require_room = [](Bytes bytes) {
    require(bytes <= most_safetensors_header_bytes,
            Errc::invalid_argument,
            "the header of a safetensors file takes more than the 100 MB that the format allows; "
            "write fewer tensors into a file");
  };
  Bytes least = 0;  // strings grow when they become JSON
  for (auto const& [key, value] : header.metadata) {
    least += key.size() + value.size();
  }
  require_room(least);
  std::string text = "{";
  auto const add = [&](std::string const& key, nlohmann::ordered_json const& value) {
    text += (text.size() == 1 ? "" : ",") + json_text(nlohmann::json(key)) + ":" + json_text(value);
  };
  if (!header.metadata.empty()) {
    add(std::string(detail::metadata_key), header.metadata);
  }
  for (auto const& entry : header.entries) {
    add(entry.tensor.name,
        {{"dtype", entry.tensor.dtype},
         {"shape", entry.tensor.extents},
         {"data_offsets", {entry.begin, entry.end}}});
  }
  text += '}';
  text.resize(align_up(text.size(), 8), ' ');
  require_room(text.size());
  std::uint64_t const length = text.size();
  std::string result(sizeof length, '\0');
  std::memcpy(result.data(), &length, sizeof length);
  return result + text;
}

/// The header of a file of \p tensors: those with the largest elements first, so that all are
/// aligned to their elements, and otherwise in the order of their names.
/// \throws Error (invalid_argument) when a tensor has no type or extents that a file can have, when
///         two have the same name, or one the name "__metadata__"; and like \ref
///         safetensors_header_text.
[[nodiscard]] inline SafetensorsHeader lay_out_safetensors(std::vector<TensorInfo> tensors,
                                                           SafetensorsMetadata metadata = {}) {
  auto const refuse = [](TensorInfo const& tensor, std::string const& what) {
    throw Error(
        Errc::invalid_argument,
        "a safetensors file cannot hold the tensor " + in_quotes(tensor.name) + ": " + what);
  };
  auto const rank = [](TensorInfo const& tensor) {
    auto const* const type = find_file_dtype(tensor.dtype);
    return type == nullptr ? 0 : type - file_dtypes.data() + 1;
  };
  std::ranges::sort(tensors, [&](TensorInfo const& a, TensorInfo const& b) {
    return rank(a) != rank(b) ? rank(a) > rank(b) : a.name < b.name;
  });
  SafetensorsHeader header{{}, std::move(metadata), 0};
  std::vector<std::string> names;
  Bytes end = 0;
  for (auto& tensor : tensors) {
    auto const checked = checked_bytes(tensor);
    if (checked.field != nullptr) {
      refuse(tensor, "its " + std::string(checked.field) + " " + checked.fault);
    }
    if (tensor.name == detail::metadata_key) {
      refuse(tensor, "the format keeps this name for texts");
    }
    if (checked.bytes > detail::most_file_bytes - most_safetensors_header_bytes - 8 - end) {
      refuse(tensor, "the file would be larger than files can be");
    }
    names.push_back(tensor.name);
    header.entries.push_back({std::move(tensor), end, end + checked.bytes});
    end += checked.bytes;
  }
  std::ranges::sort(names);
  if (auto const twice = std::ranges::adjacent_find(names); twice != names.end()) {
    throw Error(Errc::invalid_argument,
                "a safetensors file cannot hold two tensors " + in_quotes(*twice));
  }
  header.data_begin = safetensors_header_text(header).size();
  return header;
}

}  // namespace roundpipe
