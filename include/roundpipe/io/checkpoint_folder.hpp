// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A folder of weights as the model hub has them, in one file or in several, open for
/// reading.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/io/checkpoint_index.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/safetensors.hpp>
#include <roundpipe/io/stored_tensor.hpp>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

inline constexpr std::string_view weights_name = "model.safetensors";
inline constexpr std::string_view index_name = "model.safetensors.index.json";
inline constexpr Bytes most_index_bytes = 64_MiB;

}  // namespace detail

/// Opens "model.safetensors" of a folder, or, where there is none, all files that
/// "model.safetensors.index.json" names, and finds tensors by name in all of them. transformers
/// prefers the single file, too. Movable; views of tensors last as long as the folder's object.
class CheckpointFolder {
 public:
  /// \throws Error with the system's code when the folder or a file cannot be opened; (bad_file)
  ///         when the folder holds neither file, like \ref parse_safetensors_header and \ref
  ///         parse_checkpoint_index, and when index and files contradict each other: a file that
  ///         is not there, a tensor that its file lacks, that lies in a second file, or that the
  ///         index does not name.
  explicit CheckpointFolder(std::filesystem::path const& folder) : path_(folder) {
    std::error_code code;
    if (!std::filesystem::is_directory(folder, code)) {
      throw file_error("open the folder", folder, code ? code.value() : ENOTDIR);
    }
    auto const single = folder / detail::weights_name;
    auto const index = folder / detail::index_name;
    if (is_there(single)) {
      files_.emplace_back(single);
      add_tensors(nullptr);
    } else if (is_there(index)) {
      open_shards(index);
    } else {
      throw bad_file(folder.string(),
                     "the folder",
                     "holds no weights: neither " + std::string(detail::weights_name) + " nor " +
                         std::string(detail::index_name));
    }
  }

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
  /// The files of weights, in the order of their names.
  [[nodiscard]] std::span<SafetensorsFile const> files() const noexcept { return files_; }
  /// All tensors, file by file, each in the order of its file.
  [[nodiscard]] std::span<StoredTensor const> tensors() const noexcept { return tensors_; }
  /// The bytes of all tensors.
  [[nodiscard]] Bytes size_bytes() const noexcept {
    Bytes sum = 0;
    for (auto const& tensor : tensors_) {
      sum += tensor.size_bytes();
    }
    return sum;
  }

  /// The tensor \p name; none if the folder has none.
  [[nodiscard]] std::optional<StoredTensor> find(std::string_view name) const {
    auto const found = by_name_.find(name);
    return found == by_name_.end() ? std::nullopt : std::optional(tensors_[found->second]);
  }
  /// The tensor \p name. \throws Error (bad_file) if the folder has none.
  [[nodiscard]] StoredTensor at(std::string_view name) const {
    auto const found = find(name);
    if (!found) {
      throw bad_file(path_.string(), "tensor " + in_quotes(name), "is missing");
    }
    return *found;
  }

 private:
  struct IndexFile {
    std::string name;
    CheckpointIndex content;
  };

  [[nodiscard]] static bool is_there(std::filesystem::path const& path) {
    std::error_code code;
    bool const there = std::filesystem::exists(path, code);
    if (code) {
      throw file_error("look at", path, code.value());
    }
    return there;
  }

  void open_shards(std::filesystem::path const& path) {
    IndexFile index{
        path.string(),
        parse_checkpoint_index(read_file(path, detail::most_index_bytes), path.string())};
    if (index.content.weight_map.empty()) {
      throw bad_file(index.name, "weight_map", "names no tensor");
    }
    std::map<std::string, std::string> tensor_of;  // the first one of each shard
    for (auto const& [tensor, shard] : index.content.weight_map) {
      tensor_of.emplace(shard, tensor);
    }
    for (auto const& [shard, tensor] : tensor_of) {
      if (!is_there(path_ / shard)) {
        throw bad_file(index.name,
                       "weight_map of tensor " + in_quotes(tensor),
                       "is " + in_quotes(shard) + ", which is missing in the folder");
      }
      files_.emplace_back(path_ / shard);
    }
    add_tensors(&index);
    for (auto const& [tensor, shard] : index.content.weight_map) {
      if (!by_name_.contains(tensor)) {
        throw bad_file(index.name,
                       "weight_map of tensor " + in_quotes(tensor),
                       "is " + in_quotes(shard) + ", which has no such tensor");
      }
    }
  }

  /// Lists the tensors of all files, and checks them against \p index, if there is one.
  void add_tensors(IndexFile const* index) {
    for (auto const& file : files_) {
      for (std::size_t i = 0; i < file.size(); ++i) {
        auto const tensor = file[i];
        std::string_view const name = tensor.info().name;
        if (index != nullptr) {
          require_place(*index, file, name);
        }
        by_name_.emplace(name, tensors_.size());
        tensors_.push_back(tensor);
      }
    }
  }

  void require_place(IndexFile const& index,
                     SafetensorsFile const& file,
                     std::string_view name) const {
    auto const shard = file.path().filename().string();
    auto const& weight_map = index.content.weight_map;
    auto const found = weight_map.find(std::string(name));
    if (found == weight_map.end()) {
      throw bad_file(index.name,
                     "weight_map",
                     "does not name tensor " + in_quotes(name) + " of " + in_quotes(shard));
    }
    if (found->second != shard) {
      throw bad_file(index.name,
                     "weight_map of tensor " + in_quotes(name),
                     "is " + in_quotes(found->second) + ", but " + in_quotes(shard) +
                         " has such a tensor, too");
    }
  }

  std::filesystem::path path_;
  std::vector<SafetensorsFile> files_;
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

}  // namespace roundpipe
