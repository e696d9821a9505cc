// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Host memory of a backend, reserved once and handed out piece by piece.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace roundpipe {

/// Takes so many bytes of zeroed host memory, aligned to 256 bytes, which its owner keeps.
using TakeHostMemory = std::function<HostBytes(Bytes)>;

/// A list of slabs of pinned host memory; no piece straddles two.
template <Backend B>
class HostArena {
 public:
  /// A slab holds at most \p slab_bytes, or one piece; very large registrations are known to fail.
  /// Pieces of together \p expected bytes (each rounded up to 256) share slabs.
  explicit HostArena(B& backend, Bytes expected = 0, Bytes slab_bytes = 64_GiB)
      : backend_(&backend), slab_bytes_(slab_bytes), expected_(expected) {}

  /// \p bytes of zeroed memory, aligned to 256 bytes, that lives as long as the arena.
  /// \throws Error as the backend's `allocate_host` does.
  HostBytes take(Bytes bytes) {
    auto const rounded = align_up(bytes);
    if (rounded > rest_.size()) {
      auto const slab = std::max(rounded, std::min(expected_, slab_bytes_));
      slabs_.push_back(backend_->allocate_host(slab));
      rest_ = slabs_.back().bytes();
      bytes_ += slab;
    }
    auto const piece = rest_.first(bytes);
    rest_ = rest_.subspan(rounded);
    expected_ -= std::min(expected_, rounded);
    return piece;
  }

  /// Hands out \ref take. It must not outlive the arena.
  [[nodiscard]] TakeHostMemory taker() {
    return [this](Bytes bytes) { return take(bytes); };
  }

  /// Bytes of all slabs.
  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }

 private:
  using Slab = decltype(std::declval<B&>().allocate_host(Bytes{}));

  B* backend_;
  Bytes slab_bytes_;
  Bytes expected_ = 0;
  Bytes bytes_ = 0;
  std::vector<Slab> slabs_;
  HostBytes rest_;
};

}  // namespace roundpipe
