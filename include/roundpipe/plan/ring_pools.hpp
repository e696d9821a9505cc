// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Deals rings of one entry to the boundaries that devices keep.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// \brief Rings that go from hand to hand: who takes one gets the first of its kind that is free on
/// its device.
///
/// Rings of a kind are equally large, and all devices have as many.
class RingPools {
 public:
  /// The ring on \p device of a boundary of \p kind and \p bytes that lives from pass \p from until
  /// pass \p until, in the order of passes. Calls come in the order of \p from.
  Ring take(BufferKind kind, DeviceId device, std::size_t from, std::size_t until, Bytes bytes);

  /// How many rings of each kind there are by now, and the bytes of an entry of one.
  [[nodiscard]] ResidentLayout const& sizes() const noexcept { return sizes_; }

 private:
  template <class T>
  using SmallestFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;
  struct Pool {
    SmallestFirst<std::size_t> free;
    SmallestFirst<std::pair<std::size_t, std::size_t>> used;  // last reader, ring
    std::size_t count = 0;
  };

  std::array<std::vector<Pool>, ResidentLayout::kinds.size()> pools_;  // by kind and device
  ResidentLayout sizes_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/ring_pools.ipp>
#endif
