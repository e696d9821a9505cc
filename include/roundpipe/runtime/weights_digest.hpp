// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A 64-bit hash of all fp32 weights, by which two runs are compared bit for bit.

#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

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

/// The digest of the weights that \p trainer shows by `for_each_parameter`: of every parameter in
/// layer order, shared ones once.
template <class Trainer>
[[nodiscard]] std::uint64_t weights_digest(Trainer& trainer) {
  Digest digest;
  trainer.for_each_parameter([&](std::string const&, auto const&, HostSpan<float const> values) {
    digest.add(std::as_bytes(values));
  });
  return digest.value();
}

}  // namespace roundpipe
