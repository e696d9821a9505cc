// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Writes a folder of weights as the model hub has them, in one file or in several.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/checkpoint_folder.hpp>
#include <roundpipe/io/checkpoint_index.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/safetensors_header.hpp>
#include <roundpipe/io/safetensors_writer.hpp>
#include <roundpipe/io/tensor_info.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace roundpipe {

struct CheckpointOptions {
  /// The bytes of tensors that a file holds at most, unless a single tensor has more. The default
  /// is that of transformers.
  Bytes most_file_bytes = 5'000'000'000;
  /// Of each file. transformers refuses weights that do not say their format.
  SafetensorsMetadata metadata = {{"format", "pt"}};
};

/// Writes "model.safetensors", or several files and their index, if one file would be larger than
/// the options say. Like \ref SafetensorsWriter, it takes parts of tensors in any order from any
/// thread, and no file has its name before \ref finish.
class CheckpointWriter {
 public:
  /// Creates \p folder unless it is there, and its files. They hold \p tensors in this order, cut
  /// where a file is full.
  /// \throws Error (invalid_argument) when \p folder holds weights that the new ones would not
  ///         replace, when two tensors have the same name, and like \ref SafetensorsWriter.
  CheckpointWriter(std::filesystem::path folder,
                   std::vector<TensorInfo> tensors,
                   CheckpointOptions const& options = {})
      : path_(std::move(folder)) {
    std::error_code code;
    std::filesystem::create_directories(path_, code);
    if (code) {
      throw file_error("create the folder", path_, code.value());
    }
    require_no_weights();
    std::vector<std::vector<TensorInfo>> shards(1);
    Bytes bytes = 0;
    for (auto& tensor : tensors) {
      auto const checked = checked_bytes(tensor);  // the writer of the file refuses a bad tensor
      if (!shards.back().empty() && checked.bytes > options.most_file_bytes - bytes) {
        shards.emplace_back();
        bytes = 0;
      }
      bytes = std::min(bytes + checked.bytes, options.most_file_bytes);
      index_.total_size += checked.bytes;
      shards.back().push_back(std::move(tensor));
    }
    for (std::size_t i = 0; i < shards.size(); ++i) {
      auto const name =
          shards.size() == 1 ? std::string(detail::weights_name) : shard_name(i + 1, shards.size());
      writers_.push_back(std::make_unique<SafetensorsWriter>(
          path_ / name, std::move(shards[i]), options.metadata));
      for (auto const& entry : writers_.back()->header().entries) {
        if (!by_name_.emplace(entry.tensor.name, writers_.back().get()).second) {
          throw Error(Errc::invalid_argument,
                      "a checkpoint cannot hold two tensors " + in_quotes(entry.tensor.name));
        }
        index_.weight_map.emplace(entry.tensor.name, name);
      }
    }
  }

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
  /// The number of files.
  [[nodiscard]] std::size_t size() const noexcept { return writers_.size(); }

  /// See \ref SafetensorsWriter::info.
  [[nodiscard]] TensorInfo const& info(std::string_view name) const {
    return writer_of(name).info(name);
  }
  /// See \ref SafetensorsWriter::write.
  void write(std::string_view name, Bytes offset, HostSpan<std::byte const> bytes) {
    writer_of(name).write(name, offset, bytes);
  }

  /// Ends all files, and writes the index, if there are several; then the folder holds a
  /// checkpoint.
  /// \throws Error like \ref SafetensorsWriter::finish. Then the folder holds none of these files.
  void finish() {
    for (auto const& writer : writers_) {
      writer->require_complete();
    }
    try {
      for (auto const& writer : writers_) {
        writer->finish();
      }
      if (writers_.size() > 1) {
        write_file(path_ / detail::index_name, checkpoint_index_text(index_));
      }
    } catch (...) {
      for (auto const& writer : writers_) {
        std::error_code ignored;
        std::filesystem::remove(writer->path(), ignored);
      }
      throw;
    }
  }

 private:
  [[nodiscard]] static std::string shard_name(std::size_t number, std::size_t count) {
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number, count);
    return name;
  }

  /// A reader might take what an earlier checkpoint left for a part of this one.
  void require_no_weights() const {
    std::error_code code;
    std::filesystem::directory_iterator entry(path_, code);
    for (; !code && entry != std::filesystem::directory_iterator(); entry.increment(code)) {
      auto const name = entry->path().filename().string();
      if (name == detail::index_name ||
          (name.starts_with("model") && name.ends_with(".safetensors"))) {
        throw Error(Errc::invalid_argument,
                    path_in_quotes(path_) + " already holds weights: " + in_quotes(name) +
                        "; choose another folder, or remove them");
      }
    }
    if (code) {
      throw file_error("read the folder", path_, code.value());
    }
  }

  [[nodiscard]] SafetensorsWriter& writer_of(std::string_view name) const {
    auto const found = by_name_.find(name);
    if (found == by_name_.end()) {
      throw Error(Errc::invalid_argument,
                  "the checkpoint " + path_in_quotes(path_) + " was announced without a tensor " +
                      in_quotes(name));
    }
    return *found->second;
  }

  std::filesystem::path path_;
  CheckpointIndex index_;
  std::vector<std::unique_ptr<SafetensorsWriter>> writers_;
  std::unordered_map<std::string_view, SafetensorsWriter*> by_name_;
};

}  // namespace roundpipe
