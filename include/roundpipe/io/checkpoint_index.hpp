// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The index of a checkpoint in several files: which tensor lies in which file.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/json.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace roundpipe {

/// The content of a model.safetensors.index.json.
struct CheckpointIndex {
  std::map<std::string, std::string> weight_map;  ///< The file of each tensor.
  Bytes total_size = 0;                           ///< Of all tensors; 0 if the index does not say.
};

namespace detail {

/// A name of a file in the checkpoint's own folder, and of no other place.
[[nodiscard]] inline bool is_shard_name(std::string_view name) {
  constexpr std::string_view suffix = ".safetensors";
  return name.size() > suffix.size() && name.size() <= 255 && name.ends_with(suffix) &&
         name.front() != '.' && name.find("..") == std::string_view::npos &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace detail

/// Parses \p text, the content of the index \p file. Fields other than "weight_map" and
/// "metadata.total_size" may be there and are left aside.
/// \throws Error (bad_file), whose message names the file and the field: when \p text is no such
///         JSON, or a shard's name is not that of a safetensors file in the same folder.
[[nodiscard]] inline CheckpointIndex parse_checkpoint_index(HostSpan<std::byte const> text,
                                                            std::string const& file) {
  auto const json = parse_json(text, file, {.bytes = 64_MiB, .depth = 16});
  auto const is_object = [](nlohmann::json const& value) { return value.is_object(); };
  if (!is_object(json)) {
    throw bad_file(file, "the index", std::string("must be an object, not ") + json.type_name());
  }
  CheckpointIndex index;
  auto const weight_map = json.find("weight_map");
  if (weight_map == json.end() || !is_object(*weight_map)) {
    throw bad_file(file, "weight_map", "must be an object that names the file of each tensor");
  }
  for (auto const& [tensor, shard] : weight_map->items()) {
    auto const field = "weight_map of tensor " + in_quotes(tensor);
    if (!shard.is_string()) {
      throw bad_file(file, field, std::string("must be a string, not ") + shard.type_name());
    }
    auto const& name = shard.get_ref<std::string const&>();
    if (!detail::is_shard_name(name)) {
      throw bad_file(file,
                     field,
                     "is " + in_quotes(name) + ", which names no .safetensors file of the folder");
    }
    index.weight_map.emplace(tensor, name);
  }
  if (auto const metadata = json.find("metadata"); metadata != json.end()) {
    if (!is_object(*metadata)) {
      throw bad_file(
          file, "metadata", std::string("must be an object, not ") + metadata->type_name());
    }
    if (auto const total = metadata->find("total_size"); total != metadata->end()) {
      // Some writers divide bits by 8 and leave a float.
      auto const value = total->is_number() ? total->get<double>() : -1;
      if (!(value >= 0 && value < 9e18)) {
        throw bad_file(file, "metadata.total_size", "must be a number of bytes");
      }
      index.total_size =
          total->is_number_unsigned() ? total->get<Bytes>() : static_cast<Bytes>(value);
    }
  }
  return index;
}

/// \p index as the text of its file.
/// \throws Error (invalid_argument) when a name is no UTF-8.
[[nodiscard]] inline std::string checkpoint_index_text(CheckpointIndex const& index) {
  return json_text(nlohmann::json{{"metadata", {{"total_size", index.total_size}}},
                                  {"weight_map", index.weight_map}},
                   2) +
         '\n';
}

}  // namespace roundpipe
