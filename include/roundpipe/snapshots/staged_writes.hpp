// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Writes files from a buffer, past the system's cache, on threads of its own.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/direct_file.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/snapshots/content_hash.hpp>
#include <roundpipe/system/first_error.hpp>
#include <roundpipe/system/start_thread.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace roundpipe {

/// Files are written and read back in chunks that begin at multiples of this.
inline constexpr Bytes staging_chunk_bytes = hash_part_bytes;
/// So many threads write: disks are fast when they have several writes at a time to do.
inline constexpr std::size_t staging_threads = 4;

namespace detail {

/// Smaller pieces go through the system's cache: a disk takes longer for each of them than for the
/// bytes.
inline constexpr Bytes least_staged_bytes = 256_KiB;

/// Calls `f(offset, bytes)` for the parts of \p bytes, from \p offset of a file on, in its chunks.
template <class F>
void for_each_chunk_part(Bytes offset, HostSpan<std::byte const> bytes, F&& f) {
  while (!bytes.empty()) {
    auto const size =
        std::min<Bytes>(bytes.size(), staging_chunk_bytes - offset % staging_chunk_bytes);
    f(offset, bytes.first(size));
    offset += size;
    bytes = bytes.subspan(size);
  }
}

/// The hash of a part of a file, which depends on its place.
[[nodiscard]] inline std::uint64_t part_hash(Bytes offset, HostSpan<std::byte const> bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), offset);
}

}  // namespace detail

/// The memory of a \ref StagedWrites, which keeps it for the next one.
class StagingMemory {
 public:
  /// The least that it holds.
  static constexpr Bytes least_bytes = 2 * staging_threads * staging_chunk_bytes;

  /// Takes memory, which holds nothing yet. \throws std::bad_alloc
  StagingMemory() { take(least_bytes); }

  /// Grows to \p bytes, in whole chunks, if the system gives so much; what it held is lost.
  void grow(Bytes bytes) {
    try {
      if (bytes > this->bytes()) {
        take(bytes);
      }
    } catch (std::bad_alloc const&) {  // then a smaller one will do
    }
  }

  [[nodiscard]] Bytes bytes() const noexcept { return chunks_.size() * staging_chunk_bytes; }

  /// Its chunks, which lie at multiples of \ref DirectFile::page_bytes.
  [[nodiscard]] std::vector<HostBytes> const& chunks() const noexcept { return chunks_; }

 private:
  void take(Bytes bytes) {
    auto const size = align_up(bytes, staging_chunk_bytes);
    auto memory = std::make_unique_for_overwrite<std::byte[]>(size + DirectFile::page_bytes);
    std::size_t space = size + DirectFile::page_bytes;
    void* at = memory.get();
    auto* const first =
        static_cast<std::byte*>(std::align(DirectFile::page_bytes, size, at, space));
    chunks_.clear();
    for (Bytes begin = 0; begin < size; begin += staging_chunk_bytes) {
      chunks_.emplace_back(first + begin, staging_chunk_bytes);
    }
    memory_ = std::move(memory);
  }

  std::unique_ptr<std::byte[]> memory_;
  std::vector<HostBytes> chunks_;
};

/// A file that \ref StagedWrites write.
struct StagedFile {
  /// \p file must outlive this.
  explicit StagedFile(File const& file) : direct(file) {}

  DirectFile direct;
  /// Of the hashes of all that was written, in any order: see \ref read_back.
  std::atomic<std::uint64_t> sum = 0;
};

/// \brief Copies what it is to write, and writes it later.
///
/// So memory that is to be written may change as soon as it was copied, which takes a fraction of
/// the time that a disk takes, until the buffer is full. \ref write and \ref finish are for one
/// thread.
class StagedWrites {
 public:
  /// \p memory must outlive this. \throws Error as \ref start_thread does.
  explicit StagedWrites(StagingMemory& memory) : memory_(memory), free_(memory.chunks()) {
    try {
      for (std::size_t i = 0; i < staging_threads; ++i) {
        threads_.push_back(start_thread("writing snapshots", [this] { work(); }));
      }
    } catch (...) {
      stop();
      throw;
    }
  }
  StagedWrites(StagedWrites const&) = delete;
  StagedWrites& operator=(StagedWrites const&) = delete;
  /// Drops what is not written yet.
  ~StagedWrites() { stop(); }

  /// Writes \p bytes to \p to, which must outlive this, at \p offset, sooner or later. Returns when
  /// it needs \p bytes no more: waits for room in the buffer.
  /// \throws Error like \ref File::write_at, of this write or of one before.
  void write(StagedFile& to, Bytes offset, HostSpan<std::byte const> bytes) {
    detail::for_each_chunk_part(offset, bytes, [&](Bytes at, HostSpan<std::byte const> part) {
      if (part.size() < detail::least_staged_bytes) {
        to.sum.fetch_add(detail::part_hash(at, part), std::memory_order_relaxed);
        to.direct.file().write_at(at, part);
      } else {
        stage(to, at, part);
      }
    });
  }

  /// Returns when all is written. \throws Error like \ref write.
  void finish() {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] { return free_.size() == memory_.chunks().size(); });
    error_.rethrow();
  }

 private:
  struct Piece {
    StagedFile* to;
    Bytes offset;
    HostBytes bytes;  // in the chunk
    HostBytes chunk;
  };

  void stage(StagedFile& to, Bytes offset, HostSpan<std::byte const> bytes) {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] { return !free_.empty(); });
    error_.rethrow();
    auto const chunk = free_.back();
    free_.pop_back();
    lock.unlock();
    // At the same place in its page as in the file's.
    auto const copy = chunk.subspan(offset % staging_chunk_bytes, bytes.size());
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    lock.lock();
    pieces_.push_back({&to, offset, copy, chunk});
    staged_.notify_one();
  }

  void work() noexcept {
    std::unique_lock lock(mutex_);
    while (true) {
      staged_.wait(lock, [&] { return stops_ || !pieces_.empty(); });
      if (stops_) {
        return;
      }
      auto const piece = pieces_.front();
      pieces_.pop_front();
      lock.unlock();
      try {
        if (!error_.is_set()) {
          auto const hash = detail::part_hash(piece.offset, piece.bytes);
          piece.to->sum.fetch_add(hash, std::memory_order_relaxed);
          piece.to->direct.write_at(piece.offset, piece.bytes);
        }
      } catch (...) {
        error_.set(std::current_exception());
      }
      lock.lock();
      free_.push_back(piece.chunk);
      freed_.notify_one();
    }
  }

  void stop() noexcept {
    {
      std::lock_guard const lock(mutex_);
      stops_ = true;
    }
    staged_.notify_all();
    for (auto& thread : threads_) {
      thread.join();
    }
  }

  StagingMemory& memory_;
  FirstError error_;
  std::mutex mutex_;
  std::condition_variable staged_;
  std::condition_variable freed_;
  std::deque<Piece> pieces_;
  std::vector<HostBytes> free_;
  bool stops_ = false;
  std::vector<std::thread> threads_;  // last
};

/// Reads chunks [\p first, \p last) of a file that was written by \ref StagedWrites back from the
/// disk, and calls \p f with each.
/// \param size Of the file.
/// \param cuts Where what was written at once begins and ends, in order, the end of the file last.
/// \returns the part of all chunks in \c StagedFile::sum: together they have all of it, if what is
///          read is what was written.
/// \throws Error like \ref File::read_at.
template <class F>
[[nodiscard]] std::uint64_t read_back(std::filesystem::path const& path,
                                      Bytes size,
                                      std::span<Bytes const> cuts,
                                      std::size_t first,
                                      std::size_t last,
                                      StagingMemory& memory,
                                      F&& f) {
  auto const file = File::open(path);
  DirectFile const direct(file);
  std::uint64_t sum = 0;
  auto cut = cuts.begin();
  for (auto begin = first * staging_chunk_bytes; begin < last * staging_chunk_bytes;
       begin += staging_chunk_bytes) {
    auto const end = std::min(size, begin + staging_chunk_bytes);
    auto const chunk = memory.chunks().front().first(end - begin);
    direct.read_at(begin, chunk);
    f(HostSpan<std::byte const>(chunk));
    for (; cut + 1 < cuts.end(); ++cut) {  // the parts as they were written
      auto const low = std::max(begin, cut[0]);
      auto const high = std::min(end, cut[1]);
      if (low < high) {
        sum += detail::part_hash(low, chunk.subspan(low - begin, high - low));
      }
      if (cut[1] > end) {
        break;
      }
    }
  }
  return sum;
}

/// The number of chunks of a file of \p size bytes.
[[nodiscard]] constexpr std::size_t staging_chunks(Bytes size) noexcept {
  return (size + staging_chunk_bytes - 1) / staging_chunk_bytes;
}

}  // namespace roundpipe
