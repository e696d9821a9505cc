// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts the messages of an exchange into pieces, and lets a few steps be under way at once.

#include <roundpipe/concepts/process_group.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe::nccl {

/// What this rank sends to another one and receives from it; either may be empty.
struct Transfer {
  std::size_t rank = 0;
  ConstHostBytes sent;
  HostBytes received;
};

/// How many steps \p transfers take with pieces of at most \p piece_bytes.
[[nodiscard]] inline std::size_t step_count(std::span<Transfer const> transfers,
                                            std::size_t piece_bytes) {
  std::size_t longest = 0;
  for (auto const& each : transfers) {
    longest = std::max({longest, each.sent.size(), each.received.size()});
  }
  return (longest + piece_bytes - 1) / piece_bytes;
}

/// The pieces of \p transfers in step \p step, one for each rank that still sends or receives. Two
/// ranks cut what they exchange alike, whatever else each of them exchanges in the same step.
[[nodiscard]] inline std::vector<Transfer> pieces_of_step(std::span<Transfer const> transfers,
                                                          std::size_t step,
                                                          std::size_t piece_bytes) {
  auto const piece = [&](auto bytes) {
    auto const begin = std::min(step * piece_bytes, bytes.size());
    return bytes.subspan(begin, std::min(piece_bytes, bytes.size() - begin));
  };
  std::vector<Transfer> pieces;
  for (auto const& each : transfers) {
    Transfer const next{each.rank, piece(each.sent), piece(each.received)};
    if (!next.sent.empty() || !next.received.empty()) {
      pieces.push_back(next);
    }
  }
  return pieces;
}

/// Runs \p transfers in steps. A step takes a slot of \p staging, and as many steps as there are
/// slots are under way at once: what one sends goes up while another one is on the wire and what a
/// third has received comes down.
/// \param staging Has `slot_count()`; `start(slot, pieces)`, which begins a step and does not wait
///        for it; `is_done(slot)`; and `finish(slot, pieces)`, called once after that.
/// \param pause Called between looks at a step that is not done. May throw: the steps under way are
///        then left to the caller.
template <class Staging, class Pause>
void run_staged(Staging& staging,
                std::span<Transfer const> transfers,
                std::size_t piece_bytes,
                Pause&& pause) {
  auto const slots = staging.slot_count();
  auto const steps = step_count(transfers, piece_bytes);
  std::vector<std::vector<Transfer>> under_way(slots);
  auto const finish = [&](std::size_t step) {
    auto const slot = step % slots;
    while (!staging.is_done(slot)) {
      pause();
    }
    staging.finish(slot, under_way[slot]);
  };
  for (std::size_t step = 0; step < steps; ++step) {
    if (step >= slots) {
      finish(step - slots);
    }
    auto const slot = step % slots;
    under_way[slot] = pieces_of_step(transfers, step, piece_bytes);
    staging.start(slot, under_way[slot]);
  }
  for (auto step = steps - std::min(steps, slots); step < steps; ++step) {
    finish(step);
  }
}

}  // namespace roundpipe::nccl
