// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A tensor that lies in an open file.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/mapped_file.hpp>
#include <roundpipe/io/tensor_info.hpp>

#include <cassert>
#include <cstddef>

namespace roundpipe {

/// A view of a tensor in a file; a copy is cheap. It lasts as long as the \ref SafetensorsFile or
/// \ref CheckpointFolder that it comes from, also while that is moved.
class StoredTensor {
 public:
  /// Precondition: \p file has the tensor's bytes from \p begin on.
  StoredTensor(TensorInfo const& info, MappedFile const& file, Bytes begin) noexcept
      : info_(&info), file_(&file), begin_(begin), size_bytes_(info.bytes()) {
    assert(begin + size_bytes_ <= file.bytes().size());
  }

  [[nodiscard]] TensorInfo const& info() const noexcept { return *info_; }
  [[nodiscard]] MappedFile const& file() const noexcept { return *file_; }
  /// Where the tensor begins in \ref file.
  [[nodiscard]] Bytes begin() const noexcept { return begin_; }
  [[nodiscard]] Bytes size_bytes() const noexcept { return size_bytes_; }

  /// The bytes, mapped from the file: little-endian, row-major, at any address, perhaps none that
  /// the elements are aligned to. See \ref MappedFile for what reading them means; \ref
  /// read_tensors reads without the mapping.
  [[nodiscard]] HostSpan<std::byte const> bytes() const noexcept {
    return file_->bytes().subspan(begin_, size_bytes_);
  }

 private:
  TensorInfo const* info_;
  MappedFile const* file_;
  Bytes begin_;
  Bytes size_bytes_;
};

}  // namespace roundpipe
