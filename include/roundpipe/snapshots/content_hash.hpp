// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The hash by which a snapshot knows that its files are whole.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file.hpp>

#ifndef XXH_INLINE_ALL
#  define XXH_INLINE_ALL  // nothing to link
#  include <xxhash.h>
#  undef XXH_INLINE_ALL
#else
#  include <xxhash.h>
#endif

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe {

/// XXH3 with 128 bits (xxHash) over bytes given in pieces. It finds damage, not forgery.
class ContentHash {
 public:
  ContentHash() : state_(std::make_unique<XXH3_state_t>()) {
    XXH3_INITSTATE(state_.get());
    (void)XXH3_128bits_reset(state_.get());
  }

  void add(HostSpan<std::byte const> bytes) noexcept {
    (void)XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }

  /// The hash of what was added, as `xxh128sum` prints it: 32 hexadecimal digits.
  [[nodiscard]] std::string text() const {
    XXH128_canonical_t canonical{};
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (unsigned const byte : canonical.digest) {
      text += {digits[byte / 16], digits[byte % 16]};
    }
    return text;
  }

 private:
  std::unique_ptr<XXH3_state_t> state_;
};

/// The hash of \p bytes.
[[nodiscard]] inline std::string content_hash(HostSpan<std::byte const> bytes) {
  ContentHash hash;
  hash.add(bytes);
  return hash.text();
}

/// The hash of all of \p file, which is read part by part, not mapped.
/// \throws Error like \ref File::read_at.
[[nodiscard]] inline std::string content_hash(File const& file) {
  auto const size = file.size();
  std::vector<std::byte> part(std::min<Bytes>(size, 1_MiB));
  ContentHash hash;
  for (Bytes begin = 0; begin < size; begin += part.size()) {
    auto const bytes = HostBytes(part).first(std::min<Bytes>(part.size(), size - begin));
    file.read_at(begin, bytes);
    hash.add(bytes);
  }
  return hash.text();
}

/// The hash of a file in parts is that of the hashes of its parts, as texts, so that several
/// processes can find it, each a few parts of the file. A part has so many bytes; the last may have
/// fewer.
inline constexpr Bytes hash_part_bytes = 4_MiB;

/// The hash in parts of \p bytes.
[[nodiscard]] inline std::string hash_in_parts(HostSpan<std::byte const> bytes) {
  std::string hashes;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min<Bytes>(bytes.size(), hash_part_bytes))) {
    hashes += content_hash(bytes.first(std::min<Bytes>(bytes.size(), hash_part_bytes)));
  }
  return content_hash(std::as_bytes(std::span(hashes)));
}

/// The hashes of an equal share of the parts of \p file, one behind another: of the shares of all
/// \p ranks, which put together have the hash in parts, that of \p rank. They are read, not mapped.
/// \throws Error like \ref File::read_at.
[[nodiscard]] inline std::string hashes_of_parts(File const& file,
                                                 std::size_t rank = 0,
                                                 std::size_t ranks = 1) {
  auto const size = file.size();
  auto const parts = (size + hash_part_bytes - 1) / hash_part_bytes;
  std::vector<std::byte> part(std::min<Bytes>(size, hash_part_bytes));
  std::string hashes;
  for (auto i = parts * rank / ranks; i < parts * (rank + 1) / ranks; ++i) {
    auto const at = i * hash_part_bytes;
    auto const bytes = HostBytes(part).first(std::min(hash_part_bytes, size - at));
    file.read_at(at, bytes);
    hashes += content_hash(bytes);
  }
  return hashes;
}

/// What \p rank of \p ranks ranks reads of \p files for their hashes, or for those in parts: a line
/// for each. In parts it is an equal share of each file, else some of the files as wholes.
/// \throws Error like \ref File::open and \ref File::read_at.
[[nodiscard]] inline std::string hashes_of_share(std::span<std::filesystem::path const> files,
                                                 bool in_parts,
                                                 std::size_t rank,
                                                 std::size_t ranks) {
  std::string lines;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (in_parts) {
      lines += hashes_of_parts(File::open(files[i]), rank, ranks);
    } else if (i % ranks == rank) {
      lines += content_hash(File::open(files[i]));
    }
    lines += '\n';
  }
  return lines;
}

/// The hash of file number \p i by the shares of all ranks, as \ref hashes_of_share returns them.
[[nodiscard]] inline std::string joined_hash(std::span<std::string const> shares,
                                             std::size_t i,
                                             bool in_parts) {
  std::string hashes;
  for (auto const& share : shares) {
    std::istringstream lines(share);
    std::string line;
    for (std::size_t l = 0; l <= i; ++l) {
      std::getline(lines, line);
    }
    hashes += line;
  }
  return in_parts ? content_hash(std::as_bytes(std::span(hashes))) : hashes;
}

/// Whether \p text is written as a hash.
[[nodiscard]] inline bool is_content_hash(std::string_view text) noexcept {
  return text.size() == 32 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace roundpipe
