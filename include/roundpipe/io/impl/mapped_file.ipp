// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/mapped_file.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE MappedFile::MappedFile(std::filesystem::path const& path)
    : file_(File::open(path)) {
  auto const size = file_.size();
  if (size == 0) {
    return;  // there is no mapping of no bytes
  }
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_.descriptor(), 0);
  if (memory == MAP_FAILED) {
    throw file_error("map", path, errno);
  }
  bytes_ = {static_cast<std::byte const*>(memory), size};
}

ROUNDPIPE_INLINE MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

ROUNDPIPE_INLINE MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    (void)::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

ROUNDPIPE_INLINE void MappedFile::expect_sequential_reads() const noexcept {
  advise(bytes_, MADV_SEQUENTIAL, false);
}

ROUNDPIPE_INLINE void MappedFile::expect_reads(HostSpan<std::byte const> part) const noexcept {
  advise(part, MADV_WILLNEED, false);
}

ROUNDPIPE_INLINE void MappedFile::drop(HostSpan<std::byte const> part) const noexcept {
  advise(part, MADV_DONTNEED, true);
}

ROUNDPIPE_INLINE void MappedFile::advise(HostSpan<std::byte const> part,
                                         int advice,
                                         bool whole_pages) const noexcept {
  auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto begin = reinterpret_cast<std::uintptr_t>(part.data());
  auto end = begin + part.size();
  begin = (whole_pages ? begin + page - 1 : begin) / page * page;
  // The last page of the file is whole in this sense, too.
  if (whole_pages && part.data() + part.size() != bytes_.data() + bytes_.size()) {
    end = end / page * page;
  }
  if (begin < end) {
    (void)::madvise(reinterpret_cast<void*>(begin), end - begin, advice);
  }
}

}  // namespace roundpipe
