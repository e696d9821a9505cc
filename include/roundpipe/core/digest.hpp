// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A 64-bit hash of bytes.

#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <cstdint>

namespace roundpipe {

/// FNV-1a with 64 bits (Fowler, Noll, Vo; RFC 9923) over bytes given in pieces.
class Digest {
 public:
  void add(HostSpan<std::byte const> bytes) noexcept {
    for (auto const byte : bytes) {
      value_ = (value_ ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
    }
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace roundpipe
