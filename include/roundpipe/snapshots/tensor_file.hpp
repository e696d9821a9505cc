// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A safetensors file of which several ranks write parts.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/safetensors_header.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/snapshots/staged_writes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// One rank's view of the file. All ranks lay out the same tensors and cuts, so each knows where
/// its parts belong.
class TensorFile {
 public:
  /// Touches no file. \throws Error like \ref lay_out_safetensors.
  TensorFile(std::filesystem::path path, std::vector<TensorInfo> tensors)
      : path_(std::move(path)),
        // transformers refuses weights that do not say their format.
        header_(lay_out_safetensors(std::move(tensors), {{"format", "pt"}})),
        cuts_{header_.data_begin, header_.file_bytes()} {
    for (auto const& entry : header_.entries) {
      places_.emplace(entry.tensor.name, header_.data_begin + entry.begin);
    }
  }

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
  [[nodiscard]] SafetensorsHeader const& header() const noexcept { return header_; }
  [[nodiscard]] Bytes size() const noexcept { return header_.file_bytes(); }

  /// Says that one write of tensor \p name, of any rank, begins or ends at its byte \p offset.
  void add_cut(std::string const& name, Bytes offset) {
    cuts_.push_back(places_.at(name) + offset);
  }

  /// Creates the file with its room and its header: for one rank. \throws Error like \ref File.
  void create() {
    auto const text = safetensors_header_text(header_);
    file_ = File::create(path_);
    file_.reserve(size());
    file_.write_at(0, std::as_bytes(std::span(text)));
    written_ = text.size();
    staged_.emplace(file_);
  }
  /// Opens the file that another rank has created. \throws Error like \ref File.
  void open() {
    file_ = File::open_to_write(path_);
    staged_.emplace(file_);
  }

  /// Writes \p bytes of tensor \p name from its byte \p offset on, through \p writes.
  /// \throws Error like \ref StagedWrites::write.
  void write(std::string const& name,
             Bytes offset,
             HostSpan<std::byte const> bytes,
             StagedWrites& writes) {
    writes.write(*staged_, places_.at(name) + offset, bytes);
    written_ += bytes.size();
  }

  /// Returns once what this rank has written would survive a loss of power, and closes the file.
  /// \returns the sum of what it has staged, see \ref read_back. \throws Error like \ref File.
  std::uint64_t finish() {
    auto const sum = staged_->sum.load();
    file_.sync();
    staged_.reset();
    file_.close();
    return sum;
  }

  /// The bytes that this rank has written.
  [[nodiscard]] Bytes written() const noexcept { return written_; }

  /// \ref roundpipe::read_back of the whole file's chunks [\p first, \p last).
  template <class F>
  [[nodiscard]] std::uint64_t read_back(std::size_t first,
                                        std::size_t last,
                                        StagingMemory& memory,
                                        F&& f) {
    std::ranges::sort(cuts_);
    return roundpipe::read_back(path_, size(), cuts_, first, last, memory, std::forward<F>(f));
  }

 private:
  std::filesystem::path path_;
  SafetensorsHeader header_;
  std::map<std::string_view, Bytes> places_;  // by the tensor's name, in the file
  std::vector<Bytes> cuts_;
  File file_;
  std::optional<StagedFile> staged_;
  Bytes written_ = 0;
};

}  // namespace roundpipe::detail
