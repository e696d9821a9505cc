// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/policies/priority_transfer_engine.hpp>

#include <support/property.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace {

using namespace roundpipe::literals;
using roundpipe::Bytes;
using roundpipe::Chunk;
using roundpipe::Piece;
using roundpipe::PriorityTransferEngine;
using roundpipe::tensor_alignment_bytes;
using roundpipe::test::check_property;

struct Slot {
  std::vector<Bytes> tensors;
  std::size_t windows = 1;
  std::vector<Chunk> chunks;

  [[nodiscard]] Bytes total() const {
    return std::accumulate(tensors.begin(), tensors.end(), Bytes{0});
  }
  [[nodiscard]] Bytes mean() const { return (total() + windows - 1) / windows; }
};

/// Tensors of mixed sizes, like gains, biases and matrices, and their chunks.
Slot any_slot() {
  auto const small = rc::gen::inRange<Bytes>(0, 2_KiB);
  auto const medium = rc::gen::inRange<Bytes>(0, 1_MiB);
  auto const large = rc::gen::inRange<Bytes>(0, 1_GiB);
  Slot slot;
  slot.tensors = *rc::gen::container<std::vector<Bytes>>(rc::gen::oneOf(small, medium, large));
  slot.windows = *rc::gen::inRange<std::size_t>(1, 40);
  slot.chunks = PriorityTransferEngine{}.chunks(slot.tensors, slot.windows);
  return slot;
}

}  // namespace

TEST_CASE("chunks hold every byte of every tensor exactly once") {
  check_property([] {
    auto const slot = any_slot();
    std::vector<std::vector<std::pair<Bytes, Bytes>>> covered(slot.tensors.size());
    for (auto const& chunk : slot.chunks) {
      for (auto const& piece : chunk.pieces) {
        RC_ASSERT(piece.bytes > 0U);
        covered.at(piece.tensor).emplace_back(piece.offset, piece.bytes);
      }
    }
    for (std::size_t tensor = 0; tensor < slot.tensors.size(); ++tensor) {
      std::ranges::sort(covered[tensor]);
      Bytes next = 0;
      for (auto const& [offset, bytes] : covered[tensor]) {
        RC_ASSERT(offset == next);
        next += bytes;
      }
      RC_ASSERT(next == slot.tensors[tensor]);
    }
  });
}

TEST_CASE("no window exceeds the mean by more than the largest part") {
  check_property([] {
    auto const slot = any_slot();
    auto const largest_part = std::max(tensor_alignment_bytes, slot.mean());
    for (auto const& chunk : slot.chunks) {
      RC_ASSERT(chunk.bytes() <= slot.mean() + largest_part);
    }
  });
}

TEST_CASE("windows are at most a third above the best that whole parts allow") {
  // Graham's bound (1969) for longest processing time first: 4/3 - 1/(3 windows) times the optimum,
  // which is no less than the mean and than the largest part.
  check_property([] {
    auto const windows = *rc::gen::inRange<std::size_t>(1, 5);
    auto const tensors = *rc::gen::resize(
        7, rc::gen::container<std::vector<Bytes>>(rc::gen::inRange<Bytes>(1, 200)));
    // All parts are smaller than the alignment: nothing is split, so the test can try all
    // assignments.
    auto const chunks = PriorityTransferEngine{}.chunks(tensors, windows);
    Bytes longest = 0;
    for (auto const& chunk : chunks) {
      longest = std::max(longest, chunk.bytes());
    }
    std::size_t assignments = 1;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      assignments *= windows;
    }
    RC_PRE(assignments <= 100'000U);
    auto best = longest;
    for (std::size_t code = 0; code < assignments; ++code) {
      std::vector<Bytes> loads(windows);
      auto rest = code;
      for (auto const bytes : tensors) {
        loads[rest % windows] += bytes;
        rest /= windows;
      }
      best = std::min(best, *std::ranges::max_element(loads));
    }
    RC_ASSERT(3 * windows * longest <= (4 * windows - 1) * best);
  });
}

TEST_CASE("chunks are gated, ordered by window, one a window, and in tensor order inside") {
  check_property([] {
    auto const slot = any_slot();
    RC_ASSERT(slot.chunks.size() <= slot.windows);
    std::set<std::size_t> windows;
    for (auto const& chunk : slot.chunks) {
      RC_ASSERT(chunk.gated);
      RC_ASSERT(!chunk.pieces.empty());
      RC_ASSERT(chunk.window < slot.windows);
      RC_ASSERT((windows.empty() || *windows.rbegin() < chunk.window));
      windows.insert(chunk.window);
      for (std::size_t i = 1; i < chunk.pieces.size(); ++i) {
        auto const& before = chunk.pieces[i - 1];
        auto const& piece = chunk.pieces[i];
        RC_ASSERT((before.tensor < piece.tensor ||
                   (before.tensor == piece.tensor && before.offset + before.bytes < piece.offset)));
      }
    }
  });
}

TEST_CASE("pieces begin aligned, and a tensor that fits into a window stays whole") {
  check_property([] {
    auto const slot = any_slot();
    for (auto const& chunk : slot.chunks) {
      for (auto const& piece : chunk.pieces) {
        RC_ASSERT(piece.offset % tensor_alignment_bytes == 0U);
        if (slot.tensors[piece.tensor] <= slot.mean()) {
          RC_ASSERT(piece == (Piece{piece.tensor, 0, slot.tensors[piece.tensor]}));
        }
      }
    }
  });
}

TEST_CASE("equal tensors make equal chunks") {
  check_property([] {
    auto const slot = any_slot();
    auto const tensors = slot.tensors;
    RC_ASSERT(PriorityTransferEngine{1}.chunks(tensors, slot.windows) == slot.chunks);
  });
}

TEST_CASE("splitting adds at most one piece for each window's worth of bytes") {
  // A split tensor of b bytes has at most b / part + 1 parts; small copies must not multiply.
  check_property([] {
    auto const slot = any_slot();
    auto const part =
        std::max(slot.mean() / tensor_alignment_bytes, Bytes{1}) * tensor_alignment_bytes;
    std::size_t pieces = 0;
    std::size_t most = 0;
    for (auto const& chunk : slot.chunks) {
      pieces += chunk.pieces.size();
    }
    for (auto const bytes : slot.tensors) {
      most += 1 + bytes / part;
    }
    RC_ASSERT(pieces <= most);
  });
}
