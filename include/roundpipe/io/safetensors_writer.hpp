// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Writes a safetensors file part by part, from several threads.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/safetensors_header.hpp>
#include <roundpipe/io/tensor_info.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roundpipe {

/// Writes a file whose tensors are all named before the first byte comes: the header then says
/// where each belongs, and parts may come in any order, from any thread, without a copy. The file
/// takes its name in \ref finish; without that it is removed. Movable while no thread writes.
class SafetensorsWriter {
 public:
  /// Creates the file, reserves its room and writes the header. Tensors lie in the order of \ref
  /// lay_out_safetensors, whatever order \p tensors have.
  /// \throws Error like \ref lay_out_safetensors, and with the system's code when the file cannot
  ///         be created or the disk has no room.
  SafetensorsWriter(std::filesystem::path path,
                    std::vector<TensorInfo> tensors,
                    SafetensorsMetadata metadata = {})
      : header_(lay_out_safetensors(std::move(tensors), std::move(metadata))),
        file_(std::move(path)),
        written_(std::make_unique<std::atomic<Bytes>[]>(header_.entries.size())) {
    for (std::size_t i = 0; i < header_.entries.size(); ++i) {
      by_name_.emplace_back(header_.entries[i].tensor.name, i);
    }
    std::ranges::sort(by_name_);
    file_.file().reserve(header_.file_bytes());
    auto const text = safetensors_header_text(header_);
    file_.file().write_at(0, std::as_bytes(std::span(text)));
  }

  /// The name that the file will have.
  [[nodiscard]] std::filesystem::path const& path() const noexcept { return file_.path(); }
  [[nodiscard]] SafetensorsHeader const& header() const noexcept { return header_; }

  /// The tensor \p name as it was announced; lasts as long as the writer.
  /// \throws Error (invalid_argument) when the file has no such tensor.
  [[nodiscard]] TensorInfo const& info(std::string_view name) const {
    return header_.entries[index_of(name)].tensor;
  }

  /// Writes \p bytes of the tensor \p name from its byte \p offset on. For any number of threads.
  /// Each byte of a tensor must come once.
  /// \throws Error (invalid_argument) when the file has no such tensor, or the tensor fewer bytes;
  ///         with the system's code when writing fails.
  void write(std::string_view name, Bytes offset, HostSpan<std::byte const> bytes) {
    auto const i = index_of(name);
    auto const& entry = header_.entries[i];
    auto const size = entry.end - entry.begin;
    if (offset > size || bytes.size() > size - offset) {
      throw Error(Errc::invalid_argument,
                  "bytes " + std::to_string(offset) + " to " +
                      std::to_string(offset + bytes.size()) + " were written to tensor " +
                      in_quotes(name) + " of " + path_in_quotes(path()) + ", which has " +
                      std::to_string(size));
    }
    file_.file().write_at(header_.data_begin + entry.begin + offset, bytes);
    written_[i].fetch_add(bytes.size(), std::memory_order_relaxed);
  }

  /// \throws Error (invalid_argument) when a tensor was not written, or a byte twice.
  void require_complete() const {
    for (std::size_t i = 0; i < header_.entries.size(); ++i) {
      auto const& entry = header_.entries[i];
      auto const written = written_[i].load(std::memory_order_relaxed);
      if (written != entry.end - entry.begin) {
        throw Error(Errc::invalid_argument,
                    "tensor " + in_quotes(entry.tensor.name) + " of " + path_in_quotes(path()) +
                        " has " + std::to_string(entry.end - entry.begin) + " bytes, but " +
                        std::to_string(written) + " were written");
      }
    }
  }

  /// Ends the file: from now on it has its name, and will survive a loss of power. Call it once,
  /// when no thread writes any more.
  /// \throws Error like \ref require_complete; with the system's code when that fails. Then there
  ///         is no file, or the one before.
  void finish() {
    require_complete();
    file_.commit();
  }

 private:
  [[nodiscard]] std::size_t index_of(std::string_view name) const {
    auto const at =
        std::ranges::lower_bound(by_name_, name, {}, [](auto const& entry) { return entry.first; });
    if (at == by_name_.end() || at->first != name) {
      throw Error(Errc::invalid_argument,
                  path_in_quotes(path()) + " was announced without a tensor " + in_quotes(name));
    }
    return at->second;
  }

  SafetensorsHeader header_;
  std::vector<std::pair<std::string_view, std::size_t>> by_name_;
  AtomicFile file_;
  std::unique_ptr<std::atomic<Bytes>[]> written_;
};

}  // namespace roundpipe
