// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A safetensors file, open for reading.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/mapped_file.hpp>
#include <roundpipe/io/safetensors_header.hpp>
#include <roundpipe/io/stored_tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe {

/// Maps a safetensors file and checks its header; tensors are read when they are asked for.
/// Movable; a moved-from one may only be destroyed or assigned to.
class SafetensorsFile {
 public:
  /// \throws Error like \ref File::open and \ref parse_safetensors_header.
  explicit SafetensorsFile(std::filesystem::path const& path)
      : content_(std::make_unique<Content const>(path)) {}

  [[nodiscard]] std::filesystem::path const& path() const noexcept {
    return content_->file.file().path();
  }
  [[nodiscard]] MappedFile const& file() const noexcept { return content_->file; }
  [[nodiscard]] SafetensorsMetadata const& metadata() const noexcept {
    return content_->header.metadata;
  }

  /// The number of tensors.
  [[nodiscard]] std::size_t size() const noexcept { return content_->header.entries.size(); }
  /// Tensor \p i in the order of the file.
  [[nodiscard]] StoredTensor operator[](std::size_t i) const noexcept {
    auto const& entry = content_->header.entries[i];
    return {entry.tensor, content_->file, content_->header.data_begin + entry.begin};
  }

  /// The tensor \p name; none if the file has none.
  [[nodiscard]] std::optional<StoredTensor> find(std::string_view name) const noexcept {
    auto const& entries = content_->header.entries;
    auto const& order = content_->by_name;
    auto const at = std::ranges::lower_bound(
        order, name, {}, [&](std::size_t i) -> std::string_view { return entries[i].tensor.name; });
    if (at == order.end() || entries[*at].tensor.name != name) {
      return std::nullopt;
    }
    return (*this)[*at];
  }
  /// The tensor \p name. \throws Error (bad_file) if the file has none.
  [[nodiscard]] StoredTensor at(std::string_view name) const {
    auto const found = find(name);
    if (!found) {
      throw bad_file(path().string(), "tensor " + in_quotes(name), "is missing");
    }
    return *found;
  }

 private:
  struct Content {
    explicit Content(std::filesystem::path const& path)
        : file(path), header(parse_safetensors_header(file.bytes(), path.string())) {
      by_name.resize(header.entries.size());
      for (std::size_t i = 0; i < by_name.size(); ++i) {
        by_name[i] = i;
      }
      std::ranges::sort(by_name, {}, [&](std::size_t i) -> std::string_view {
        return header.entries[i].tensor.name;
      });
    }

    MappedFile file;
    SafetensorsHeader header;
    std::vector<std::size_t> by_name;
  };

  std::unique_ptr<Content const> content_;
};

}  // namespace roundpipe
